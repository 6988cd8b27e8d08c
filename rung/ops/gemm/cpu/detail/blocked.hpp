// SPDX-License-Identifier: Apache-2.0
//
// Building blocks of blocked, packed multiplication [Goto & van de Geijn 2008]: block sizes, packed
// blocks of A and B, and the destination of the sums. The rungs contain the loops over blocks.
#pragma once

#include <unistd.h>

#include "rung/cpu/prefetch.hpp"
#include "rung/ops/gemm/cpu/detail/engine.hpp"

namespace rung::gemm_cpu {

/// Accumulators of one matrix of the batch: C itself where kernels can write it, else (narrow
/// types, C with strided columns) a staging buffer for C from (i0, j0) on.
template <class T>
struct Sums {
  const RowMajorProduct& call;
  const Kernels<T>& kernels;
  std::int64_t batch;
  bool staged;
  T* data;
  std::int64_t row;
  std::int64_t i0 = 0, j0 = 0;

  [[nodiscard]] T* at(std::int64_t i, std::int64_t j) const {
    return data + (i - i0) * row + (j - j0);
  }
  /// Returns the factor for the previous contents of the accumulators, in the first block of k or
  /// in a later one.
  [[nodiscard]] T beta(bool first) const {
    if (!first) return T{1};
    return staged ? T{0} : static_cast<T>(call.beta);
  }
  /// Applies the epilogue. Called once per element, after its sum is complete.
  void finish(std::int64_t i, std::int64_t rows, std::int64_t j, std::int64_t columns) const {
    if (!staged && !call.has_epilogue()) return;
    FinishArgs<T> f{at(i, j),
                    row,
                    rows,
                    columns,
                    gemm_cpu::at(call.c, call.out, batch, i, j),
                    call.c.row,
                    call.c.column,
                    staged ? static_cast<T>(call.beta) : T{0},
                    nullptr,
                    0,
                    0,
                    call.activation};
    if (call.bias.data != nullptr) {
      f.bias = gemm_cpu::at(call.bias, call.out, batch, i, j);
      f.bias_row = call.bias.row;
      f.bias_column = call.bias.column;
    }
    if (call.residual.data != nullptr) {
      f.residual = gemm_cpu::at(call.residual, call.out, batch, i, j);
      f.residual_row = call.residual.row;
      f.residual_column = call.residual.column;
    }
    kernels.finish[static_cast<int>(call.out)](f);
  }
};

/// Returns C itself if it is direct(), else the staging buffer, whose rows have `row` elements.
template <class T>
Sums<T> make_sums(const RowMajorProduct& call, const Kernels<T>& kernels, std::int64_t batch,
                  T* staging, std::int64_t row) {
  if (!call.direct()) return {call, kernels, batch, true, staging, row};
  T* c = static_cast<T*>(at(call.c, call.out, batch, 0, 0));
  return {call, kernels, batch, false, c, call.c.row};
}

/// Computes C = act(beta * C + bias) + residual: the product over an empty k.
template <class T>
void finish_without_product(const RowMajorProduct& call) {
  static T zeros[1024] = {};  // never written
  for (std::int64_t batch = 0; batch < call.batch; ++batch) {
    Sums<T> sums{call, kernels<T>(), batch, true, zeros, 0};
    for (; sums.j0 < call.n; sums.j0 += 1024) {
      sums.finish(0, call.m, sums.j0, std::min<std::int64_t>(1024, call.n - sums.j0));
    }
  }
}

/// Sizes of the blocks: k in steps of kc, columns of B in steps of nc, rows of A in steps of mc.
/// When sums are staged, rows come in groups of `staged_rows` so that the staging buffer stays
/// small.
struct Blocking {
  std::int64_t mc, kc, nc, staged_rows;
};

// Measured on a 2-core Zen 5 vCPU at 1000 to 4096. Long pieces of k pay: C is read and written once
// for each, and a tile takes time beside its FMAs (alone in L1, short k: 45 to 80 cycles with
// AVX-512, 20 to 30 with AVX2). f32 with one thread: 512, 1024, 2048 of k at a time 226, 234, 237
// GFLOP/s at 2048 cubed; 2048 and 4096 of k 236 and 224 at 4096 cubed. Two threads, which share L3
// and memory, are faster with 1024 (2048: -2 % to -4 %; 512: -3 % to -5 %). Blocks of A of half the
// L2 cache lose 3 % against a quarter (B and C pass through L2 as well). 8 MiB of B instead of 4,
// so that A is packed fewer times, gain 2 %, 6 MiB gain 0 to 2 %, 12 and 16 MiB lose up to 6 %.
// If tiles prefetch their lines (2-core Emerald Rapids vCPU, L2 of 2 MiB), 1024 of k at a time is
// best with one thread, too: f32 2048 cubed 160 GFLOP/s, with 2048 of k 157; f64 79 and 73. Blocks
// of A of 560 KiB are as fast.
struct BlockLimits {
  std::int64_t k_bytes = 8192;       // per row of A
  std::int64_t a_bytes = 288 << 10;  // per block of A, for a 1 MiB L2 cache
  std::int64_t b_bytes = 8 << 20;    // per block of B, which stays in the shared L3
  std::int64_t staged_bytes = 8 << 20;
};

// A strip of B is read from L3 once per block of A. If other programs keep L3 busy, larger blocks
// of A pay, with pieces of k short enough to fit them in L2. Measured on a 2-core Zen 4 vCPU (L2 of
// 1 MiB), alternately, 1024 of k and 576 KiB of A against the limits above: f32 1024, 2048 and 4096
// cubed +1 %, +5 % to +8 %, +3 % with one thread, -2 % to +2 % with two; f64 2048 cubed +5 %, with
// two threads 0; AVX2 (against 768 of k and 144 KiB of A) +4 %, +4 % to +6 %, +1 %, with two
// threads +2 %, 0, -3 % to +7 %. 512 and 768 of k, and 400 to 700 KiB of A, are as good within 2 %;
// each is the slowest for some shape. Not tried on other CPUs.
inline BlockLimits block_limits() {
  static const BlockLimits known = [] {
    BlockLimits limits;
    if (cpu::prefetches_into_l2()) {
      limits.k_bytes = 4096;
      const std::int64_t l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);  // 0 if it is not known
      if (l2 > 0) limits.a_bytes = std::min<std::int64_t>(l2, 1 << 20) / 16 * 9;
    }
    return limits;
  }();
  return known;
}

template <class T>
Blocking make_blocking(const RowMajorProduct& call, const Kernels<T>& ks,
                       const BlockLimits& limits) {
  constexpr std::int64_t size = sizeof(T);
  // Equal steps: a short last step would have to read and write all of C.
  const std::int64_t depth = call.depth();
  const std::int64_t max_k = limits.k_bytes / size;
  const std::int64_t kc = ceil_div(depth, ceil_div(depth, max_k));
  const std::int64_t strips = ceil_div(call.n, ks.tile_columns());
  const std::int64_t max_strips =
      std::max<std::int64_t>(1, limits.b_bytes / (size * kc * ks.tile_columns()));
  const std::int64_t nc = ceil_div(strips, ceil_div(strips, max_strips)) * ks.tile_columns();
  const std::int64_t max_panels =
      std::max<std::int64_t>(1, limits.a_bytes / (size * kc * ks.tile_rows));
  const std::int64_t panels = std::min(max_panels, ceil_div(call.m, ks.tile_rows));
  const std::int64_t staged_rows =
      std::max<std::int64_t>(1, limits.staged_bytes / (size * nc * ks.tile_rows)) * ks.tile_rows;
  return {panels * ks.tile_rows, kc, nc, staged_rows};
}

/// Returns the width of the next strip of B: tile_columns, or a single vector for a narrow last
/// strip.
template <class T>
int strip_width(const Kernels<T>& ks, std::int64_t columns_left) {
  return 0 < columns_left && columns_left <= ks.lanes ? ks.lanes : ks.tile_columns();
}

/// Packs columns [j, j + columns) of rows [p, p + k) of B. j and the strip starts are aligned to
/// strips, so several threads may pack parts of one block.
template <class T>
void pack_b(const RowMajorProduct& call, const Kernels<T>& ks, std::int64_t batch, std::int64_t p,
            std::int64_t k, std::int64_t j, std::int64_t columns, T* to) {
  const PackFunction<T>* pack = ks.pack[static_cast<int>(call.in)];
  const int width = ks.tile_columns();
  const int last = strip_width(ks, columns % width);
  const std::int64_t whole = last == width ? columns : columns / width * width;
  pack(at(call.b, call.in, batch, p, j), call.b.column, call.b.row, whole, call.n - j, width, k,
       to);
  if (whole < columns) {
    pack(at(call.b, call.in, batch, p, j + whole), call.b.column, call.b.row, columns - whole,
         call.n - j - whole, last, k, to + whole * k);
  }
}

/// Block of A in the layout that tiles read.
template <class T>
struct PackedA {
  T* data;
  Source source;
  std::int64_t row;  // row stride, if strided
  /// Returns the panel that starts at row x of the block.
  [[nodiscard]] const T* panel(std::int64_t x, std::int64_t k) const {
    return data + x * (source == Source::packed ? k : row);
  }
};

/// Returns the row pitch of a copied block in elements: an odd number of cache lines, so that the
/// rows of a tile map to different sets.
template <class T>
std::int64_t copied_row(std::int64_t k) {
  constexpr std::int64_t line = 64 / sizeof(T);
  return (ceil_div(k, line) | 1) * line;
}

/// Packs rows [i, i + rows) of columns [p, p + k) of A into panels of tile_rows; the remaining rows
/// form a shorter panel.
template <class T>
PackedA<T> pack_panels(const RowMajorProduct& call, const Kernels<T>& ks, std::int64_t batch,
                       std::int64_t i, std::int64_t rows, std::int64_t p, std::int64_t k, T* to) {
  const PackFunction<T>* pack = ks.pack[static_cast<int>(call.in)];
  const std::int64_t whole = rows / ks.tile_rows * ks.tile_rows;
  pack(at(call.a, call.in, batch, i, p), call.a.row, call.a.column, whole, call.m - i, ks.tile_rows,
       k, to);
  if (whole < rows) {
    const auto left = static_cast<int>(rows - whole);
    pack(at(call.a, call.in, batch, i + whole, p), call.a.row, call.a.column, left,
         call.m - i - whole, left, k, to + whole * k);
  }
  return {to, Source::packed, 0};
}

/// Largest n for which contiguous rows of A are copied to an alias-free pitch instead of
/// transposed: transposing costs more, and a tile can broadcast from rows as well as from columns.
/// The hardware prefetchers follow 14 streams less well than one, which costs more with many
/// columns and where tiles prefetch their lines (EXPERIMENTS.md).
constexpr std::int64_t max_columns_for_copied_rows = 1536;
template <class T>
PackedA<T> pack_a(const RowMajorProduct& call, const Kernels<T>& ks, std::int64_t batch,
                  std::int64_t i, std::int64_t rows, std::int64_t p, std::int64_t k, T* to) {
  if (call.a.column != 1 || call.n > max_columns_for_copied_rows || ks.prefetches) {
    return pack_panels(call, ks, batch, i, rows, p, k, to);
  }
  const int in = static_cast<int>(call.in);
  const std::int64_t row = copied_row<T>(k);
  ks.copy[in](at(call.a, call.in, batch, i, p), call.a.row, rows, k, to, row);
  return {to, Source::strided, row};
}

}  // namespace rung::gemm_cpu
