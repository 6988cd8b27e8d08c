// SPDX-License-Identifier: Apache-2.0
//
// The parts that blocked, packed multiplication is put together from [Goto & van de Geijn 2008]:
// how large the blocks are, how they are packed, the loops over tiles inside a block, and where the
// sums go. The loops over blocks are the rungs'.
#pragma once

#include "rung/ops/gemm/cpu_engine.hpp"

namespace rung::gemm_cpu {

/// Where the sums of one matrix of the batch are kept while they grow: in C itself where kernels
/// can write it, else (narrow types, C with spread columns) in a staging buffer that covers the part
/// of C from (i0, j0) on.
template <class T>
struct Sums {
  const Call& call;
  const Kernels<T>& kernels;
  std::int64_t batch;
  bool staged;
  T* data;
  std::int64_t row;
  std::int64_t i0 = 0, j0 = 0;

  [[nodiscard]] T* at(std::int64_t i, std::int64_t j) const {
    return data + (i - i0) * row + (j - j0);
  }
  /// What the first, or a later, block of k does with what is there.
  [[nodiscard]] T beta(bool first) const {
    if (!first) return T{1};
    return staged ? T{0} : static_cast<T>(call.beta);
  }
  /// To be called once for each element, when its sum is complete.
  void finish(std::int64_t i, std::int64_t rows, std::int64_t j, std::int64_t columns) const {
    if (!staged && !call.has_epilogue()) return;
    FinishArgs<T> f{at(i, j), row, rows, columns,
                    gemm_cpu::at(call.c, call.out, batch, i, j), call.c.row, call.c.column,
                    staged ? static_cast<T>(call.beta) : T{0}, nullptr, 0, 0, call.activation};
    if (call.bias.data != nullptr) {
      f.bias = gemm_cpu::at(call.bias, call.out, batch, i, j);
      f.bias_row = call.bias.row;
      f.bias_column = call.bias.column;
    }
    kernels.finish[static_cast<int>(call.out)](f);
  }
};

/// In C itself if it is direct(), else in the staging buffer, whose rows are `row` elements long.
template <class T>
Sums<T> make_sums(const Call& call, const Kernels<T>& kernels, std::int64_t batch, T* staging,
                  std::int64_t row) {
  if (!call.direct()) return {call, kernels, batch, true, staging, row};
  T* c = static_cast<T*>(at(call.c, call.out, batch, 0, 0));
  return {call, kernels, batch, false, c, call.c.row};
}

/// C = act(beta * C + bias): what remains of a product over an empty k.
template <class T>
void finish_without_product(const Call& call) {
  static constexpr T zeros[1024] = {};
  const Kernels<T>& ks = kernels<T>();
  for (std::int64_t batch = 0; batch < call.batch; ++batch) {
    for (std::int64_t j = 0; j < call.n; j += 1024) {
      FinishArgs<T> f{zeros, 0, call.m, std::min<std::int64_t>(1024, call.n - j),
                      at(call.c, call.out, batch, 0, j), call.c.row, call.c.column,
                      static_cast<T>(call.beta), nullptr, 0, 0, call.activation};
      if (call.bias.data != nullptr) {
        f.bias = at(call.bias, call.out, batch, 0, j);
        f.bias_row = call.bias.row;
        f.bias_column = call.bias.column;
      }
      ks.finish[static_cast<int>(call.out)](f);
    }
  }
}

/// Sizes of the blocks: k in steps of kc, columns of B in steps of nc, rows of A in steps of mc. When
/// sums are staged, rows come in groups of `staged_rows` so that the staging buffer stays small.
struct Blocking {
  std::int64_t mc, kc, nc, staged_rows;
};

struct BlockLimits {
  std::int64_t kc_bytes = 2048;      // of one row of A
  std::int64_t a_bytes = 512 << 10;  // half of a 1 MiB L2 cache: the rest is for B and C passing by
  std::int64_t b_bytes = 8 << 20;    // stays in the shared L3
  std::int64_t staged_bytes = 8 << 20;
};

template <class T>
Blocking make_blocking(const Call& call, const Kernels<T>& ks, const BlockLimits& limits) {
  constexpr std::int64_t size = sizeof(T);
  // Equal steps: a last step of a few k would pay for reading and writing all of C.
  const std::int64_t depth = call.depth();
  const std::int64_t kc = ceil_div(depth, ceil_div(depth, limits.kc_bytes / size));
  const std::int64_t strips = ceil_div(call.n, ks.tile_columns());
  const std::int64_t most_strips =
      std::max<std::int64_t>(1, limits.b_bytes / (size * kc * ks.tile_columns()));
  const std::int64_t nc = ceil_div(strips, ceil_div(strips, most_strips)) * ks.tile_columns();
  const std::int64_t most_panels =
      std::max<std::int64_t>(1, limits.a_bytes / (size * kc * ks.tile_rows));
  const std::int64_t panels = std::min(most_panels, ceil_div(call.m, ks.tile_rows));
  const std::int64_t staged_rows =
      std::max<std::int64_t>(1, limits.staged_bytes / (size * nc * ks.tile_rows)) * ks.tile_rows;
  return {panels * ks.tile_rows, kc, nc, staged_rows};
}

/// Strips of B of tile_columns, one behind the other; the last one may be a single vector wide.
template <class T>
int strip_width(const Kernels<T>& ks, std::int64_t columns_left) {
  return columns_left <= ks.lanes ? ks.lanes : ks.tile_columns();
}

/// Packs columns [j, j + columns) of rows [p, p + k) of B. j and the strip starts are aligned to strips,
/// so several threads may pack parts of one block.
template <class T>
void pack_b(const Call& call, const Kernels<T>& ks, std::int64_t batch, std::int64_t p,
            std::int64_t k, std::int64_t j, std::int64_t columns, T* to) {
  for (std::int64_t x = 0; x < columns; x += ks.tile_columns()) {
    const auto count = static_cast<int>(std::min<std::int64_t>(columns - x, ks.tile_columns()));
    ks.pack[static_cast<int>(call.in)](at(call.b, call.in, batch, p, j + x), call.b.column,
                                       call.b.row, count, strip_width(ks, columns - x), k,
                                       to + x * k);
  }
}

/// Packs rows [i, i + rows) of columns [p, p + k) of A into panels of tile_rows.
template <class T>
void pack_a(const Call& call, const Kernels<T>& ks, std::int64_t batch, std::int64_t i,
            std::int64_t rows, std::int64_t p, std::int64_t k, T* to) {
  for (std::int64_t x = 0; x < rows; x += ks.tile_rows) {
    const auto count = static_cast<int>(std::min<std::int64_t>(rows - x, ks.tile_rows));
    ks.pack[static_cast<int>(call.in)](at(call.a, call.in, batch, i + x, p), call.a.row,
                                       call.a.column, count, count, k, to + x * k);
  }
}

/// All tiles of a block: rows [i, i + rows) by columns [j, j + columns). One strip of B (kc x 32 floats)
/// stays near while the panels of A, which fit in L2, go by. A strip that has seen the last of k
/// is finished at once, while its part of C is still cached.
template <class T>
void multiply_block(const Sums<T>& sums, const T* a, const T* b, std::int64_t k, std::int64_t i,
                    std::int64_t rows, std::int64_t j, std::int64_t columns, bool first,
                    bool last) {
  const Kernels<T>& ks = sums.kernels;
  TileArgs<T> t{};
  t.k = k;
  t.c_row = sums.row;
  t.alpha = static_cast<T>(sums.call.alpha);
  t.beta = sums.beta(first);
  for (std::int64_t y = 0; y < columns; y += ks.tile_columns()) {
    t.columns = static_cast<int>(std::min<std::int64_t>(columns - y, ks.tile_columns()));
    t.b = b + y * k;
    const int vectors = strip_width(ks, columns - y) / ks.lanes;
    for (std::int64_t x = 0; x < rows; x += ks.tile_rows) {
      t.a = a + x * k;
      t.c = sums.at(i + x, j + y);
      const std::int64_t count = std::min<std::int64_t>(rows - x, ks.tile_rows);
      ks.tile(Source::packed, Source::packed, vectors, count)(t);
    }
    if (last) sums.finish(i, rows, j + y, t.columns);
  }
}

}  // namespace rung::gemm_cpu
