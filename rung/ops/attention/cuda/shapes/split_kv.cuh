// SPDX-License-Identifier: Apache-2.0
// attention / split KV: rows of the heads that share a head of K and V, partial results per split
// of the keys, and the kernel that combines them. Also used by split_kv_decode.
#pragma once

#include <cstdint>

#include "rung/core/integer.hpp"
#include "rung/device/collectives.hpp"
#include "rung/device/dependent.hpp"
#include "rung/ops/attention/cuda/detail/heads.hpp"

namespace rung::attention_cuda::inline RUNG_TARGET::split_kv {

inline constexpr int combine_rows = 4;  // rows per block of the combine kernel, one warp each

/// Partition of rows and keys, and destination of partial results. Row r of a K and V head is token
/// r / group of its query head r % group; there are `rows` of them, in `row_tiles` tiles.
template <class Sum>
struct Cut {
  std::int64_t rows;
  int row_tiles;
  int splits;
  Sum* weighted;  // [batch][kv_head][row][split][Dv]
  Sum* maximum;   // [batch][kv_head][row][split]
  Sum* sum;       // [batch][kv_head][row][split]
};

/// Indices of a row: batch element, head of q, and token.
template <class T>
struct Row {
  std::int64_t b, h, i;
  __device__ __forceinline__ Row(const Heads<T>& p, std::int64_t b, std::int64_t g, std::int64_t r)
      : b(b), h(g * p.group + r % p.group), i(r / p.group) {}
};

/// A split's keys, [first, end), of those that the rows [first_row, last_row] of a tile see.
struct SplitKeys {
  std::int64_t first, end;
  template <class T>
  __device__ __forceinline__ SplitKeys(const Heads<T>& p, const KeyMask<std::int64_t>& mask,
                                       std::int64_t first_row, std::int64_t last_row, int split,
                                       int splits, int unit) {
    const std::int64_t begin = mask.first_key(first_row / p.group);
    const std::int64_t all = mask.end_key(last_row / p.group) - begin;
    const std::int64_t units = ceil_div(all, unit);
    first = begin + units * split / splits * unit;
    end = begin + smaller(units * (split + 1) / splits * unit, all);
  }
};

__device__ __forceinline__ float power_of_2(float z) { return ptx::fast_exp2(z); }
__device__ __forceinline__ double power_of_2(double z) { return exp2(z); }
/// Returns the larger value and drops a NaN, which the sum restores.
__device__ __forceinline__ float greater(float a, float b) { return fmaxf(a, b); }
__device__ __forceinline__ double greater(double a, double b) { return fmax(a, b); }

/// Destination of a row's results: o and lse or, if its keys are split, the partial results.
/// Constructed once per row, because its offset needs divisions.
template <class T>
class RowResult {
  using Sum = Accumulator<T>;
  T* o_ = nullptr;           // null: partial results
  Sum* weighted_ = nullptr;  // partial sums of this row and split
  std::int64_t stride_ = 1;
  Sum reciprocal_ = 1;

 public:
  /// Finds the row's destination; the thread with `leads` set writes lse, or the partial maximum
  /// and sum.
  __device__ __forceinline__ RowResult(const Heads<T>& p, const Cut<Sum>& cut, std::int64_t b,
                                       std::int64_t g, std::int64_t r, int split, Sum maximum,
                                       Sum sum, bool leads) {
    if (cut.splits == 1) {
      const Row<T> row(p, b, g, r);
      o_ = &p.o(b, row.h, row.i, 0);
      stride_ = p.o.strides[3];
      reciprocal_ = reciprocal(sum);
      if (leads) p.write_lse(b, row.h, row.i, log_sum(maximum * p.rule.scale, sum));
      return;
    }
    const std::int64_t part = ((b * p.kv_heads() + g) * cut.rows + r) * cut.splits + split;
    weighted_ = cut.weighted + part * p.value_width();
    if (leads) {
      cut.maximum[part] = maximum;
      cut.sum[part] = sum;
    }
  }
  __device__ __forceinline__ void write(int column, Sum value) const {
    if (o_ != nullptr) {
      o_[column * stride_] = convert<T>(value * reciprocal_);
    } else {
      weighted_[column] = value;
    }
  }
};

/// A row's maximum, sum and per-warp factors, combined over a block's warps in warp order.
template <int Warps, class Sum>
struct Combined {
  Sum maximum = no_maximum<Sum>;
  Sum sum = 0;
  Sum part[Warps];  // factor of each warp's weighted values

  /// Combines the values returned by maximum_of(warp) and sum_of(warp); `factor` scales scores to
  /// exponents of 2.
  template <class MaximumOf, class SumOf>
  __device__ __forceinline__ Combined(const MaximumOf& maximum_of, const SumOf& sum_of,
                                      Sum factor) {
#pragma unroll
    for (int w = 0; w < Warps; ++w) maximum = greater(maximum, maximum_of(w));
#pragma unroll
    for (int w = 0; w < Warps; ++w) {
      part[w] = power_of_2((maximum_of(w) - maximum) * factor);
      sum += part[w] * sum_of(w);
    }
  }
};

/// Combines the splits of a row in the order of the keys and writes o and lse; one warp per row.
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
  const Sum factor = p.rule.scale * log2_e<Sum>;
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
    p.write_lse(b, row.h, row.i, log_sum(maximum * p.rule.scale, sum));
  }
}

// --- on the host ---------------------------------------------------------------------------------

/// Returns whether rows are contiguous and consist of aligned 16-byte chunks.
inline bool has_wide_rows(const ConstTensorRef& heads) {
  const auto chunk = static_cast<std::int64_t>(16 / size_of(heads.dtype));
  return heads.strides[3] == 1 && heads.shape[3] % chunk == 0 && starts_rows_at(heads, 16);
}

/// Returns the partition; allocates workspace for partial results if splits > 1.
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

/// Launches the combine kernel if splits > 1.
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
