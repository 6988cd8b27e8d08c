// SPDX-License-Identifier: Apache-2.0
// Row sums: sum_c dout o and lse log2(e) per query, computed once for all tiles by one warp per
// row, 8 rows per block.
//
// A query that sees no key gets 0 and +infinity, whatever its operands hold.
#pragma once

#include "rung/device/collectives.hpp"
#include "rung/device/launch.hpp"
#include "rung/device/unwritten.hpp"
#include "rung/ops/attention_backward/cuda/detail/gradients.hpp"

namespace rung::attention_backward_cuda::inline RUNG_TARGET {

/// Arrays indexed by first_sum() + i for query i.
template <class Sum>
struct RowSums {
  Sum* lse;
  Sum* sum;
};

/// Bulk copies start at multiples of 16 bytes: at every sum_group-th f32, counted from the first
/// query of a batch element that sees a key. They may read sum_tail numbers past the last query;
/// numbers that belong to no query are undefined.
constexpr int sum_group = 4;
constexpr int sum_tail = 128;

/// Returns the number of sums per head: of a batch element or, if queries are packed, of all. Each
/// element has room for its alignment.
RUNG_HD RUNG_ALWAYS_INLINE inline std::int64_t sums_per_head(std::int64_t queries,
                                                             std::int64_t elements) {
  return (queries / sum_group + 2 * elements) * sum_group;
}

/// Returns the index of query 0 of head h of a batch element, whose mask is given.
template <class T, class Index>
RUNG_HD RUNG_ALWAYS_INLINE inline std::int64_t first_sum(const Gradients<T>& p,
                                                         const KeyMask<Index>& mask, std::int64_t b,
                                                         std::int64_t h) {
  const Index before = mask.first_query(0);  // these see no key
  const Index shift = round_up(before, Index{sum_group}) - before;
  if (p.query_offsets.data == nullptr) {
    return (b * p.heads() + h) * sums_per_head(p.queries(), 1) + shift;
  }
  return h * sums_per_head(p.queries(), p.batch()) + sums_per_head(p.query_rows(b).first, b) +
         shift;
}

constexpr int rows_per_sum_block = 8;

template <class T>
__global__ void __launch_bounds__(32 * rows_per_sum_block)
    attention_backward_row_sums(Gradients<T> p, RowSums<Accumulator<T>> rows, std::int64_t count) {
  using Sum = Accumulator<T>;
  const std::int64_t row =
      std::int64_t{blockIdx.x} * rows_per_sum_block + static_cast<int>(threadIdx.x) / warp_size;
  if (row >= count) return;
  const std::int64_t line = row % p.queries();  // of the tensors
  const std::int64_t h = row / p.queries() % p.heads();
  const std::int64_t index = row / p.queries() / p.heads();
  const auto [b, i] = packed_position(p.query_offsets, index, line, p.queries());
  const int lane = lane_of_thread();
  const auto mask = p.mask(b);
  const bool sees = i >= 0 && i < mask.queries && mask.end_key(i) > 0;
  Sum sum = 0;
  for (std::int64_t c = lane; sees && c < p.value_width(); c += warp_size) {
    sum += convert<Sum>(p.dout(index, h, line, c)) * convert<Sum>(p.o(index, h, line, c));
  }
  sum = warp_reduce(sum, [](Sum x, Sum y) { return x + y; });
  if (lane != 0) return;
  if (i < 0 || i >= mask.queries) return;  // a packed row of no element
  const std::int64_t to = first_sum(p, mask, b, h) + i;
  rows.sum[to] = sum;
  rows.lse[to] =
      sees ? lse_as_power_of_two(p.lse(index, h, line)) : std::numeric_limits<Sum>::infinity();
}

constexpr int sink_threads = 256;

/// Writes the gradient of a sink: a block per head adds up its `count` rows of all batch elements.
template <class T>
__global__ void __launch_bounds__(sink_threads)
    attention_backward_of_sinks(Gradients<T> p, RowSums<Accumulator<T>> rows, std::int64_t count) {
  using Sum = Accumulator<T>;
  auto& partial = shared<Sum[sink_threads / warp_size]>();
  const std::int64_t h = blockIdx.x;
  const Sum sink = p.sinks(h) * log2_e<Sum>;
  Sum sum = 0;
  for (std::int64_t at = threadIdx.x; at < count; at += sink_threads) {
    const auto [b, i] =
        packed_position(p.query_offsets, at / p.queries(), at % p.queries(), p.queries());
    const auto mask = p.mask(b);
    if (i < 0 || i >= mask.queries) continue;  // a packed row of no element
    const std::int64_t row = first_sum(p, mask, b, h) + i;
    sum -= power_of_two(sink - rows.lse[row]) * rows.sum[row];
  }
  const auto plus = [](Sum x, Sum y) { return x + y; };
  sum = warp_reduce(sum, plus);
  if (lane_of_thread() == 0) partial[static_cast<int>(threadIdx.x) / warp_size] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int warp = 1; warp < sink_threads / warp_size; ++warp) sum += partial[warp];
  p.dsinks(h) = sum;
}

// --- on the host ---------------------------------------------------------------------------------

/// Returns the number of sums of all heads and batch elements.
inline std::int64_t count_sums(const AttentionBackward::Args& args) {
  const std::int64_t elements = args.has_query_offsets() ? args.batch() : 1;
  return args.q.shape[0] * args.heads() * sums_per_head(args.queries(), elements);
}

/// Computes the row sums in the context's workspace, and the gradient of the sinks from them, if it
/// was requested; returns the sums.
template <class T>
RowSums<Accumulator<T>> make_row_sums(const AttentionBackward::Args& args, Context& context,
                                      const Gradients<T>& p) {
  using Sum = Accumulator<T>;
  const std::int64_t count = args.batch() == 0 ? 0 : query_rows(args);
  const std::int64_t sums = count_sums(args) + sum_tail;
  auto* const memory =
      static_cast<Sum*>(context.workspace(static_cast<std::size_t>(2 * sums) * sizeof(Sum)));
  // Bulk copies also load numbers that belong to no query.
  allow_unwritten(memory, static_cast<std::size_t>(2 * sums) * sizeof(Sum));
  const RowSums<Sum> rows{memory, memory + sums};
  launch(context, {.grid = ceil_div(count, rows_per_sum_block), .block = 32 * rows_per_sum_block},
         attention_backward_row_sums<T>, p, rows, count);
  if (args.has_sink_gradient()) {
    launch(context,
           {.grid = p.heads(),
            .block = sink_threads,
            .shared_bytes = sink_threads / warp_size * sizeof(Sum)},
           attention_backward_of_sinks<T>, p, rows, count / larger(p.heads(), std::int64_t{1}));
  }
  return rows;
}

}  // namespace rung::attention_backward_cuda::inline RUNG_TARGET
