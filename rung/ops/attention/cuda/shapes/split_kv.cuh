// SPDX-License-Identifier: Apache-2.0
// attention / split KV: rows of the heads that share a head of K and V, partial results per split
// of the keys, and the kernel that combines them. Also used by split_kv_decode.
#pragma once

#include <cstdint>

#include "rung/core/integer.hpp"
#include "rung/device/collectives.hpp"
#include "rung/device/dependent.hpp"
#include "rung/device/divisor.hpp"
#include "rung/device/load.hpp"
#include "rung/device/shared.hpp"
#include "rung/ops/attention/cuda/detail/heads.hpp"

namespace rung::attention_cuda::inline RUNG_TARGET::split_kv {

inline constexpr int combine_warps = 4;  // of a block of the combine kernel, which owns a row
inline constexpr int max_splits = 128;
inline constexpr int max_value_width = 256;

/// Partition of rows and keys, and destination of partial results. Row r of a K and V head is token
/// r / group of its query head r % group. With packed queries `rows` is the mean of the batch
/// elements: a block loops over every row_tiles-th tile of its element's rows.
template <class Sum>
struct Cut {
  std::int64_t rows;
  int row_tiles;
  int splits;
  Divisor page;  // keys per page
  Divisor by_group{}, by_kv_heads{}, by_rows{}, by_row_tiles{}, by_splits{};
  Sum* weighted;  // [batch element][kv_head][row][split][Dv]
  Sum* maximum;   // [batch element][kv_head][row][split]
  Sum* sum;       // [batch element][kv_head][row][split]
};

// `Plain` kernels are for the arguments that require_basic() accepts; the others look up where a
// row is stored, and apply the rule of the scores and the sinks.

/// Rows of a batch element per head of K and V, and the number of rows before them in the partial
/// results.
struct ElementRows {
  std::int64_t count, before;
};
template <bool Plain, class T, class K, class Sum>
__device__ __forceinline__ ElementRows rows_of(const Heads<T, K>& p, const Cut<Sum>& cut,
                                               std::int64_t b) {
  if constexpr (!Plain) {
    if (p.query_offsets.data != nullptr) {
      const auto rows = p.query_rows(b);
      return {rows.count * p.group, rows.first * p.heads()};
    }
  }
  return {cut.rows, b * p.kv_heads() * cut.rows};
}

/// Factors that turn what a kernel keeps of a query and a key into their score, and into an
/// exponent of 2. It keeps their product, or the score itself if the rule is more than a scale.
template <class Sum>
struct ScoreUnit {
  Sum score, exponent;
};
template <bool Plain, class Sum>
__device__ __forceinline__ ScoreUnit<Sum> unit_of(const ScoreRule<Sum>& rule) {
  const Sum score = Plain || rule.is_plain() ? rule.scale : Sum(1);
  return {score, score * log2_e<Sum>};
}

/// Finds the keys of a batch element, of which there are fewer than 2^31. The entry of the page
/// table is an argument, so that a kernel can load it early.
template <class T, class K = T>
class StoredKeys {
  const Heads<T, K>& p_;
  Divisor page_;
  std::int64_t b_;
  std::int64_t first_;  // row of key 0 without pages

 public:
  __device__ __forceinline__ StoredKeys(const Heads<T, K>& p, const Divisor& page, std::int64_t b)
      : p_(p),
        page_(page),
        b_(b),
        first_(p.key_offsets.data == nullptr ? 0 : p.key_rows(b).first) {}

  /// Returns the entry of key j's page; 0 without pages.
  [[nodiscard]] __device__ __forceinline__ std::int32_t entry(std::int64_t j) const {
    if (p_.page_table.data == nullptr) return 0;
    return p_.page_table(b_, std::int64_t{page_.quotient(static_cast<std::uint32_t>(j))});
  }
  /// Returns the offset of key j in k or v, at head 0.
  [[nodiscard]] __device__ __forceinline__ std::int64_t offset(const View<const K, 4>& rows,
                                                               std::int64_t j,
                                                               std::int32_t entry) const {
    if (p_.page_table.data != nullptr) {
      // An entry that names no page must not become an address.
      const std::int64_t number = clamped(std::int64_t{entry}, std::int64_t{0}, rows.shape[0] - 1);
      auto page = static_cast<std::uint32_t>(j);
      const int row = page_.take(page);
      return number * rows.strides[0] + row * rows.strides[2];
    }
    return (p_.key_offsets.data != nullptr ? 0 : b_ * rows.strides[0]) +
           (first_ + j) * rows.strides[2];
  }
};

/// Indices of a row: batch element, head of q, and token.
template <class T>
struct Row {
  std::int64_t b, h, i;
  __device__ __forceinline__ Row(const Divisor& by_group, std::int64_t b, std::int64_t g,
                                 std::int64_t r)
      : b(b) {
    auto token = static_cast<std::uint32_t>(r);
    h = g * by_group.value + by_group.take(token);
    i = token;
  }
};

/// Indices of a row, and the last key that a causal mask shows it, for the rule of its scores.
struct RowIndices {
  std::int64_t h, i, diagonal;
};

/// A split's keys, [first, end), of those that the rows [first_row, last_row] of a tile see.
struct SplitKeys {
  std::int64_t first, end;
  __device__ __forceinline__ SplitKeys(std::int64_t first, std::int64_t end)
      : first(first), end(end) {}
  template <class T, class K>
  __device__ __forceinline__ SplitKeys(const Heads<T, K>& p, const KeyMask<std::int64_t>& mask,
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

/// Adds the sink, if any, to a row's score maximum and sum. Returns the factor of its weighted
/// values: those of the sink and of the values, divided by the sum.
template <bool Plain, class T, class K, class Sum>
__device__ __forceinline__ Sum finish_row(const Heads<T, K>& p, std::int64_t b, std::int64_t h,
                                          Sum& maximum, Sum& sum) {
  if constexpr (Plain) return reciprocal(sum);
  // A score unit above 1 takes the initial maximum to -infinity.
  maximum = greater(maximum, no_maximum<Sum>);
  const Sum factor = add_sink(p, h, maximum, sum) * p.value_scale(b, h / p.group);
  return factor * reciprocal(sum);
}

/// Destination of a row's results: o and lse or, if its keys are split, the partial results.
/// Constructed once per row, because its offset needs divisions.
template <bool Plain, class T>
class RowResult {
  using Sum = Accumulator<T>;
  T* o_ = nullptr;           // null: partial results
  Sum* weighted_ = nullptr;  // partial sums of this row and split
  std::int64_t stride_ = 1;
  Sum factor_ = 1;

 public:
  /// Finds the row's destination; the thread with `leads` set writes lse, or the partial maximum
  /// and sum.
  template <class K>
  __device__ __forceinline__ RowResult(const Heads<T, K>& p, const Cut<Sum>& cut,
                                       const ElementRows& rows, std::int64_t b, std::int64_t g,
                                       std::int64_t r, int split, Sum maximum, Sum sum,
                                       bool leads) {
    if (cut.splits == 1) {
      const Row<T> row(cut.by_group, b, g, r);
      if constexpr (Plain) {
        o_ = &p.o(b, row.h, row.i, 0);
      } else {
        o_ = &p.o_of(b)(row.h, row.i, 0);
      }
      stride_ = p.o.strides[3];
      if (sum != 0) maximum *= unit_of<Plain>(p.rule_of(b, g)).score;
      factor_ = finish_row<Plain>(p, b, row.h, maximum, sum);
      if (leads) p.write_lse(b, row.h, row.i, log_sum(maximum, sum));
      return;
    }
    const std::int64_t part = (rows.before + g * rows.count + r) * cut.splits + split;
    weighted_ = cut.weighted + part * p.value_width();
    if (leads) {
      cut.maximum[part] = maximum;
      cut.sum[part] = sum;
    }
  }
  __device__ __forceinline__ void write(int column, Sum value) const {
    if (o_ != nullptr) {
      o_[column * stride_] = convert<T>(value * factor_);
    } else {
      weighted_[column] = value;
    }
  }
  /// Writes N columns from `column` on, a multiple of N that divides Dv.
  template <int N>
  __device__ __forceinline__ void write_pack(int column, const Pack<Sum, N>& values) const {
    if (o_ == nullptr) {
      store_wide<N>(weighted_ + column, values);
      return;
    }
    Pack<T, N> results;
#pragma unroll
    for (int i = 0; i < N; ++i) results[i] = convert<T>(values[i] * factor_);
    if (stride_ == 1 && is_wide_aligned<T, N>(o_)) {
      store_wide<N>(o_ + column, results);
      return;
    }
#pragma unroll
    for (int i = 0; i < N; ++i) o_[(column + i) * stride_] = results[i];
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

template <class Sum>
struct CombineLayout {
  Sum part[max_splits];  // factor of each split's weighted values
  Sum weighted[combine_warps][max_value_width];
};

/// Adds up a warp's share of the splits of a row, N columns per lane and step.
template <int N, class Sum>
__device__ __forceinline__ void add_splits(CombineLayout<Sum>& layout, const Sum* weighted,
                                           int splits, int width) {
  const int warp = static_cast<int>(threadIdx.x) / warp_size;
  for (int column = lane_of_thread() * N; column < width; column += warp_size * N) {
    Pack<Sum, N> sums = {};
#pragma unroll 8
    for (int split = warp; split < splits; split += combine_warps) {
      const auto values = load_wide<N>(weighted + std::int64_t{split} * width + column);
#pragma unroll
      for (int i = 0; i < N; ++i) sums[i] += layout.part[split] * values[i];
    }
#pragma unroll
    for (int i = 0; i < N; ++i) layout.weighted[warp][column + i] = sums[i];
  }
}

/// Combines the splits of a row in a fixed order and writes o and lse; one block per row. Lanes
/// load the maxima and sums of different splits and warps add different splits, because a loop
/// over all splits would wait for memory once per few of them.
template <class T, class K>
__global__ void __launch_bounds__(warp_size* combine_warps)
    attention_combine_splits(Heads<T, K> p, Cut<Accumulator<T>> cut) {
  using Sum = Accumulator<T>;
  constexpr int lane_splits = max_splits / warp_size;
  let_dependent_start();
  auto& layout = shared<CombineLayout<Sum>>();
  const int lane = lane_of_thread();
  const int warp = static_cast<int>(threadIdx.x) / warp_size;
  const auto width = static_cast<int>(p.value_width());
  std::uint32_t at = blockIdx.x;
  const int first_row = cut.by_rows.take(at);
  const std::int64_t g = cut.by_kv_heads.take(at);
  const std::int64_t b = at;
  wait_for_preceding();
  const ElementRows rows = rows_of<false>(p, cut, b);
  const ScoreUnit<Sum> unit = unit_of<false>(p.rule_of(b, g));
  for (std::int64_t r = first_row; r < rows.count; r += cut.rows) {
    const std::int64_t first = (rows.before + g * rows.count + r) * cut.splits;
    Sum maxima[lane_splits];
    Sum sums[lane_splits];
    Sum maximum = no_maximum<Sum>;
#pragma unroll
    for (int i = 0; i < lane_splits; ++i) {
      const int split = lane + i * warp_size;
      maxima[i] = split < cut.splits ? cut.maximum[first + split] : no_maximum<Sum>;
      sums[i] = split < cut.splits ? cut.sum[first + split] : Sum(0);
      maximum = greater(maximum, maxima[i]);
    }
#pragma unroll
    for (int distance = warp_size / 2; distance > 0; distance /= 2) {
      maximum = greater(maximum, shuffle_xor(maximum, distance));
    }
    Sum sum = 0;
#pragma unroll
    for (int i = 0; i < lane_splits; ++i) {
      const int split = lane + i * warp_size;
      if (split >= cut.splits) break;
      const Sum part = power_of_2((maxima[i] - maximum) * unit.exponent);
      sum += part * sums[i];
      if (warp == 0) layout.part[split] = part;
    }
#pragma unroll
    for (int distance = warp_size / 2; distance > 0; distance /= 2) {
      sum += shuffle_xor(sum, distance);
    }
    __syncthreads();  // all parts are there; the row before has been written
    const Sum* const weighted = cut.weighted + first * width;
    constexpr int chunk = vector_width<Sum>;
    if (width % chunk == 0) {
      add_splits<chunk>(layout, weighted, cut.splits, width);
    } else {
      add_splits<1>(layout, weighted, cut.splits, width);
    }
    __syncthreads();
    const Row<T> row(cut.by_group, b, g, r);
    if (sum != 0) maximum *= unit.score;
    const Sum factor = finish_row<false>(p, b, row.h, maximum, sum);
    const View<T, 1> o = p.o_of(b).at(row.h).at(row.i);
    for (int column = static_cast<int>(threadIdx.x); column < width;
         column += warp_size * combine_warps) {
      Sum value = 0;
#pragma unroll
      for (int w = 0; w < combine_warps; ++w) value += layout.weighted[w][column];
      o(column) = convert<T>(value * factor);
    }
    if (threadIdx.x == 0) p.write_lse(b, row.h, row.i, log_sum(maximum, sum));
  }
}

// --- on the host ---------------------------------------------------------------------------------

/// Returns whether rows are contiguous and consist of aligned 16-byte chunks.
inline bool has_wide_rows(const ConstTensorRef& heads) {
  const auto chunk = static_cast<std::int64_t>(16 / size_of(heads.dtype));
  return heads.strides[3] == 1 && heads.shape[3] % chunk == 0 && starts_rows_at(heads, 16);
}

/// Returns the rows per head of K and V of a batch element of typical size.
inline std::int64_t typical_rows(const Attention::Args& args) {
  return args.group() * args.typical_queries();
}

/// Returns the maximum number of keys that a tile of rows sees in a batch element of typical size.
inline std::int64_t typical_tile_keys(const Attention::Args& args, std::int64_t tile_rows) {
  return most_visible_keys(args.queries_of(tile_rows), args.typical_keys(), args.options.window);
}

/// Returns whether kernels for plain arguments support these.
inline bool is_plain(const Attention::Args& args) { return static_cast<bool>(require_basic(args)); }

/// Returns whether rows of a batch element fit Divisor.
inline bool has_divisible_rows(const Attention::Args& args) {
  return static_cast<double>(args.group()) * static_cast<double>(args.queries()) <=
         static_cast<double>(Divisor::max);
}

/// Returns the partition; allocates workspace for partial results if splits > 1.
template <class Sum>
Cut<Sum> cut_of(const Attention::Args& args, Context& context, std::int64_t row_tiles,
                std::int64_t splits) {
  Cut<Sum> cut{.rows = typical_rows(args),
               .row_tiles = static_cast<int>(row_tiles),
               .splits = static_cast<int>(splits),
               .page = {},
               .weighted = nullptr,
               .maximum = nullptr,
               .sum = nullptr};
  if (args.has_pages() && args.keys() > 0) cut.page = Divisor::of(args.k.shape[2]);
  const auto divisor_of = [](std::int64_t d) { return Divisor::of(larger(d, std::int64_t{1})); };
  cut.by_group = divisor_of(args.group());
  cut.by_kv_heads = divisor_of(args.kv_heads());
  cut.by_rows = divisor_of(cut.rows);
  cut.by_row_tiles = divisor_of(row_tiles);
  cut.by_splits = divisor_of(splits);
  if (splits == 1) return cut;
  const std::int64_t parts = args.q.shape[0] * args.heads() * args.queries() * splits;
  cut.weighted = static_cast<Sum*>(
      context.workspace(static_cast<std::size_t>(parts * (args.value_width() + 2)) * sizeof(Sum)));
  cut.maximum = cut.weighted + parts * args.value_width();
  cut.sum = cut.maximum + parts;
  return cut;
}

/// Launches the combine kernel if splits > 1.
template <class T, class K>
void combine_splits(const Attention::Args& args, Context& context, const Heads<T, K>& p,
                    const Cut<Accumulator<T>>& cut) {
  if (cut.splits == 1) return;
  launch(context,
         {.grid = args.batch() * args.kv_heads() * cut.rows,
          .block = warp_size * combine_warps,
          .shared_bytes = sizeof(CombineLayout<Accumulator<T>>),
          .dependent = can_depend(context)},
         attention_combine_splits<T, K>, p, cut);
}

}  // namespace rung::attention_cuda::inline RUNG_TARGET::split_kv
