// SPDX-License-Identifier: Apache-2.0
// Reuse: how often tiled kernels load the same element. Counts are of elements, and exact where a
// tile divides its matrix; beyond the edge a tile counts as a whole one.
#pragma once

#include <span>

namespace rung::bench {

/// C = A B: A is m x k, B is k x n.
struct ProductShape {
  double m = 0, k = 0, n = 0;
  /// A multiply-add is two.
  [[nodiscard]] double operations() const { return 2 * m * k * n; }
};

struct OperandLoads {
  double a = 0;
  double b = 0;
  [[nodiscard]] double total() const { return a + b; }
};

/// C in tiles of rows x columns: an element of A is loaded once per column of tiles, one of B once
/// per row of tiles. A: m k ceil(n / columns), B: k n ceil(m / rows).
OperandLoads tiled_loads(const ProductShape& shape, double rows, double columns);

/// Registers of a v1 x v2 tile of C that advances v3 steps of k at a time:
/// v1 v3 (A) + v2 v3 (B) + v1 v2 (C).
constexpr double tile_registers(double v1, double v2, double v3) {
  return v1 * v3 + v2 * v3 + v1 * v2;
}

/// A cache that holds b1 rows of A, b2 columns of B and a tile of C. Source: the model of cache
/// blocking by strips.
struct CacheBlocking {
  OperandLoads loads;   // into the cache: A n^2, B n^2 ceil(n / b1)
  double elements = 0;  // held at once: b1 n + b2 n + b1 b2
};
CacheBlocking cache_blocking(double n, double b1, double b2);
/// The largest b = b1 = b2 of which the blocks fit in `elements`: 2 b n + b^2; 0: none does.
double largest_cache_block(double n, double elements);

/// A block's tile in shared memory: rows x columns of C, `step` of k at a time.
struct SharedTile {
  double rows = 0, columns = 0, step = 0;
  double thread_rows = 1, thread_columns = 1;  // of C per thread

  [[nodiscard]] double threads() const { return rows / thread_rows * (columns / thread_columns); }
  /// Elements of A and of B.
  [[nodiscard]] double shared_elements() const { return (rows + columns) * step; }
  /// Per block: one after the tile is loaded and one before the next.
  [[nodiscard]] double barriers(double k) const;
  /// Operations of all threads where those beyond the edges compute, too.
  [[nodiscard]] double launched_operations(const ProductShape& shape) const;
};

/// One axis of a stencil: `tile` outputs per block, each from `mask` (odd) inputs around it.
struct StencilAxis {
  double tile = 0;
  double mask = 0;

  [[nodiscard]] double radius() const { return (mask - 1) / 2; }
  [[nodiscard]] double input_tile() const { return tile + mask - 1; }
  /// Reads of one tile: T M.
  [[nodiscard]] double reads() const { return tile * mask; }
  /// Reads beyond one end of the tile: r (r + 1) / 2 for tiles of r = (M - 1) / 2 and more.
  [[nodiscard]] double reads_beyond() const;
  /// T M / (T + M - 1): reads per load of a tile with its halo.
  [[nodiscard]] double reuse() const { return reads() / input_tile(); }
  /// Reads per load of a tile at the end of the array, beyond which nothing is read or loaded:
  /// (T M - r (r + 1) / 2) / (T + r).
  [[nodiscard]] double boundary_reuse() const;
};

/// The product over the axes of what `of` returns.
double product(std::span<const StencilAxis> axes, double (*of)(const StencilAxis&));

}  // namespace rung::bench
