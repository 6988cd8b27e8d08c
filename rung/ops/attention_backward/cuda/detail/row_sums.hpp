// SPDX-License-Identifier: Apache-2.0
// Row sums: sum_c dout o and lse log2(e) per query, computed once for all tiles by one warp per
// row, 8 rows per block.
//
// A query that sees no key gets 0 and +infinity, whatever its operands hold.
#pragma once

#include "rung/device/collectives.hpp"
#include "rung/device/launch.hpp"
#include "rung/ops/attention_backward/cuda/detail/gradients.hpp"

namespace rung::attention_backward_cuda::inline RUNG_TARGET {

/// Arrays indexed by (b * heads + h) * queries + i.
template <class Sum>
struct RowSums {
  Sum* lse;
  Sum* sum;
};

constexpr int rows_per_sum_block = 8;

template <class T>
__global__ void __launch_bounds__(32 * rows_per_sum_block)
    attention_backward_row_sums(Gradients<T> p, RowSums<Accumulator<T>> rows, std::int64_t count) {
  using Sum = Accumulator<T>;
  const std::int64_t row =
      std::int64_t{blockIdx.x} * rows_per_sum_block + static_cast<int>(threadIdx.x) / warp_size;
  if (row >= count) return;
  const std::int64_t i = row % p.queries();
  const std::int64_t h = row / p.queries() % p.heads();
  const std::int64_t b = row / p.queries() / p.heads();
  const int lane = lane_of_thread();
  const bool sees = p.mask(b).end_key(i) > 0;
  Sum sum = 0;
  for (std::int64_t c = lane; sees && c < p.value_width(); c += warp_size) {
    sum += convert<Sum>(p.dout(b, h, i, c)) * convert<Sum>(p.o(b, h, i, c));
  }
  sum = warp_reduce(sum, [](Sum x, Sum y) { return x + y; });
  if (lane != 0) return;
  rows.sum[row] = sum;
  rows.lse[row] = sees ? lse_as_power_of_two(p.lse(b, h, i)) : std::numeric_limits<Sum>::infinity();
}

/// Computes the row sums in the context's workspace and returns them.
template <class T>
RowSums<Accumulator<T>> make_row_sums(const AttentionBackward::Args& args, Context& context,
                                      const Gradients<T>& p) {
  using Sum = Accumulator<T>;
  const std::int64_t count = query_rows(args);
  auto* const memory =
      static_cast<Sum*>(context.workspace(static_cast<std::size_t>(2 * count) * sizeof(Sum)));
  const RowSums<Sum> rows{memory, memory + count};
  launch(context, {.grid = ceil_div(count, rows_per_sum_block), .block = 32 * rows_per_sum_block},
         attention_backward_row_sums<T>, p, rows, count);
  return rows;
}

}  // namespace rung::attention_backward_cuda::inline RUNG_TARGET
