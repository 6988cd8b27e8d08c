// SPDX-License-Identifier: Apache-2.0
// Rungs that split the keys: rows of all heads that share a head of K and V, partial results of
// parts of the keys, and the kernel that combines them.
#pragma once

#include <cstdint>

#include "rung/core/integer.hpp"
#include "rung/device/collectives.hpp"
#include "rung/device/dependent.hpp"
#include "rung/ops/attention/cuda/detail/heads.hpp"

namespace rung::attention_cuda::inline RUNG_TARGET::split_kv {

inline constexpr int combine_rows = 4;  // of a block of the second kernel, a warp each

/// How the rows of a call are cut, and where partial results go: row r of a head of K and V is
/// token r / group of its head r % group; there are `rows` of them, in tiles.
template <class Sum>
struct Cut {
  std::int64_t rows;
  int row_tiles;
  int splits;
  Sum* weighted;  // [batch][kv_head][row][split][Dv]
  Sum* maximum;   // [batch][kv_head][row][split]
  Sum* sum;       // likewise
};

/// A row's place: which token of which head.
template <class T>
struct Row {
  std::int64_t b, h, i;
  __device__ __forceinline__ Row(const Heads<T>& p, std::int64_t b, std::int64_t g, std::int64_t r)
      : b(b), h(g * p.group + r % p.group), i(r / p.group) {}
};

__device__ __forceinline__ float power_of_2(float z) { return ptx::fast_exp2(z); }
__device__ __forceinline__ double power_of_2(double z) { return exp2(z); }
/// A NaN is passed over: it comes back in the sum.
__device__ __forceinline__ float greater(float a, float b) { return fmaxf(a, b); }
__device__ __forceinline__ double greater(double a, double b) { return fmax(a, b); }

/// Where a row's results go: to o and lse, or, if its keys are split, to the partial results.
template <class T>
__device__ __forceinline__ void write(const Heads<T>& p, const Cut<Accumulator<T>>& cut,
                                      std::int64_t b, std::int64_t g, std::int64_t r, int split,
                                      int column, Accumulator<T> value, Accumulator<T> maximum,
                                      Accumulator<T> sum) {
  const Row<T> row(p, b, g, r);
  if (cut.splits == 1) {
    p.o(b, row.h, row.i, column) = convert<T>(value * reciprocal(sum));
    if (column == 0) p.write_lse(b, row.h, row.i, log_sum(maximum * p.scale, sum));
    return;
  }
  const std::int64_t part = ((b * p.kv_heads() + g) * cut.rows + r) * cut.splits + split;
  cut.weighted[part * p.value_width() + column] = value;
  if (column == 0) {
    cut.maximum[part] = maximum;
    cut.sum[part] = sum;
  }
}

/// A warp per row: the partial results of its splits, in the order of the keys.
template <class T>
__global__ void __launch_bounds__(32 * combine_rows)
    attention_combine_splits(Heads<T> p, Cut<Accumulator<T>> cut) {
  using Sum = Accumulator<T>;
  start_dependent();
  const std::int64_t at = std::int64_t{blockIdx.x} * combine_rows + threadIdx.x / warp_size;
  if (at >= p.batch() * p.kv_heads() * cut.rows) return;
  const std::int64_t r = at % cut.rows;
  const std::int64_t g = at / cut.rows % p.kv_heads();
  const std::int64_t b = at / cut.rows / p.kv_heads();
  const Sum factor = p.scale * log2_e<Sum>;
  const Sum* const maxima = cut.maximum + at * cut.splits;
  const Sum* const sums = cut.sum + at * cut.splits;
  const Sum* const weighted = cut.weighted + at * cut.splits * p.value_width();
  Sum maximum = no_maximum<Sum>;
  for (int split = 0; split < cut.splits; ++split) maximum = greater(maximum, maxima[split]);
  Sum sum = 0;
  for (int split = 0; split < cut.splits; ++split) {
    sum += power_of_2((maxima[split] - maximum) * factor) * sums[split];
  }
  const Row<T> row(p, b, g, r);
  for (int column = lane_of_thread(); column < p.value_width(); column += warp_size) {
    Sum value = 0;
#pragma unroll 4
    for (int split = 0; split < cut.splits; ++split) {
      const Sum part = power_of_2((maxima[split] - maximum) * factor);
      value += part * weighted[split * p.value_width() + column];
    }
    p.o(b, row.h, row.i, column) = convert<T>(value * reciprocal(sum));
  }
  if (lane_of_thread() == 0) {
    p.write_lse(b, row.h, row.i, log_sum(maximum * p.scale, sum));
  }
}

// --- on the host ---------------------------------------------------------------------------------

/// With workspace for the partial results, if there are more splits than one.
template <class Sum>
Cut<Sum> cut_of(const Attention::Args& args, Context& context, std::int64_t row_tiles,
                std::int64_t splits) {
  Cut<Sum> cut{.rows = args.group() * args.queries(),
               .row_tiles = static_cast<int>(row_tiles),
               .splits = static_cast<int>(splits),
               .weighted = nullptr,
               .maximum = nullptr,
               .sum = nullptr};
  if (splits == 1) return cut;
  const std::int64_t parts = args.batch() * args.kv_heads() * cut.rows * splits;
  cut.weighted = static_cast<Sum*>(
      context.workspace(static_cast<std::size_t>(parts * (args.value_width() + 2)) * sizeof(Sum)));
  cut.maximum = cut.weighted + parts * args.value_width();
  cut.sum = cut.maximum + parts;
  return cut;
}

/// The second kernel, if there are more splits than one.
template <class T>
void combine_splits(const Attention::Args& args, Context& context, const Heads<T>& p,
                    const Cut<Accumulator<T>>& cut) {
  if (cut.splits == 1) return;
  launch(context,
         {.grid = ceil_div(args.batch() * args.kv_heads() * cut.rows, combine_rows),
          .block = 32 * combine_rows,
          .dependent = can_depend(context)},
         attention_combine_splits<T>, p, cut);
}

}  // namespace rung::attention_cuda::inline RUNG_TARGET::split_kv
