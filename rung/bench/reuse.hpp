// SPDX-License-Identifier: Apache-2.0
// Data reuse of tiled kernels. Loads are counted in elements, and exact if tiles divide the matrix;
// a partial tile counts as a whole tile.
#pragma once

#include <span>

namespace rung::bench {

/// Shape of a product C = A B: A is m x k, B is k x n.
struct ProductShape {
  double m = 0, k = 0, n = 0;
  /// Returns the FLOP; a multiply-add counts as two.
  [[nodiscard]] double operations() const { return 2 * m * k * n; }
};

struct OperandLoads {
  double a = 0;
  double b = 0;
  [[nodiscard]] double total() const { return a + b; }
};

/// Returns the loads for C in tiles of rows x columns. Each element of A is loaded once per column
/// of tiles: m k ceil(n / columns) loads. Each element of B is loaded once per row of tiles:
/// k n ceil(m / rows) loads.
OperandLoads tiled_loads(const ProductShape& shape, double rows, double columns);

/// Returns the registers of a v1 x v2 tile of C that loads v3 steps of k at a time:
/// v1 v3 (A) + v2 v3 (B) + v1 v2 (C).
constexpr double tile_registers(double v1, double v2, double v3) {
  return v1 * v3 + v2 * v3 + v1 * v2;
}

/// Cache blocking by strips of n x n matrices: the cache holds b1 rows of A, b2 columns of B and a
/// b1 x b2 tile of C.
struct CacheBlocking {
  OperandLoads loads;   // into the cache: A n^2, B n^2 ceil(n / b1)
  double elements = 0;  // held at once: b1 n + b2 n + b1 b2
};
CacheBlocking cache_blocking(double n, double b1, double b2);
/// Returns the largest b = b1 = b2 with 2 b n + b^2 <= elements; 0 if there is none.
double largest_cache_block(double n, double elements);

/// Tile of a block: rows x columns of C, with operands in shared memory, `step` of k at a time.
struct SharedTile {
  double rows = 0, columns = 0, step = 0;
  double thread_rows = 1, thread_columns = 1;  // of C per thread

  [[nodiscard]] double threads() const { return rows / thread_rows * (columns / thread_columns); }
  /// Returns the elements of A and B in shared memory.
  [[nodiscard]] double shared_elements() const { return (rows + columns) * step; }
  /// Returns the barriers per block: one after each tile is loaded, one before the next.
  [[nodiscard]] double barriers(double k) const;
  /// Returns the FLOP of all threads, including threads beyond the edges.
  [[nodiscard]] double launched_operations(const ProductShape& shape) const;
};

/// One axis of a stencil: `tile` outputs per block, each from `mask` (odd) inputs around it.
struct StencilAxis {
  double tile = 0;
  double mask = 0;

  [[nodiscard]] double radius() const { return (mask - 1) / 2; }
  [[nodiscard]] double input_tile() const { return tile + mask - 1; }
  /// Returns the reads of one tile: T M, with T = tile and M = mask.
  [[nodiscard]] double reads() const { return tile * mask; }
  /// Returns the reads beyond one end of the tile: r (r + 1) / 2 if T >= r = (M - 1) / 2.
  [[nodiscard]] double reads_beyond() const;
  /// Returns the reads per loaded element of a tile with its halo: T M / (T + M - 1).
  [[nodiscard]] double reuse() const { return reads() / input_tile(); }
  /// Returns the reads per loaded element of a tile at the end of the array, which has a halo on
  /// one side only: (T M - r (r + 1) / 2) / (T + r).
  [[nodiscard]] double boundary_reuse() const;
};

/// Returns the product of of(axis) over the axes.
double product(std::span<const StencilAxis> axes, double (*of)(const StencilAxis&));

}  // namespace rung::bench
