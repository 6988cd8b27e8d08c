// SPDX-License-Identifier: Apache-2.0
// The kernel of softmax for rows that fill all of their threads' registers.
#pragma once

#include "rung/device/dependent.hpp"
#include "rung/ops/softmax/cuda/detail/packed_row.hpp"

namespace rung::softmax_cuda::inline RUNG_TARGET {

/// Whole rows, of whole warps: nothing is asked for each pack, and each row has a block of its own.
/// `packed`: kept as they were read.
template <class P, int packs, int threads, int blocks, bool packed>
__global__ void __launch_bounds__(threads, blocks) softmax_registers_whole(Rows<2> rows, P p) {
  start_dependent();
  using Sum = typename P::Sum;
  constexpr RowKind kind = RowKind::whole;
  auto& scratch = shared<TotalScratch<Sum>>();
  const MergePowers<Sum> merge{Power<Sum>(p.scale)};
  const std::int64_t row = blockIdx.x;
  const auto* x = p.x + rows.template offset<0>(row);
  auto* y = p.y + rows.template offset<1>(row);
  const auto meet = [&](const Total<Sum>& mine) {
    return row_total<true>(mine, merge, scratch, 0);
  };
  if constexpr (packed) {
    constexpr Words* no_stage = nullptr;
    forward_packed_row<packs, 0, kind>(x, y, rows.length, 0, p, merge.power, no_stage, meet);
  } else {
    forward_row<packs, kind>(x, y, rows.length, 0, p, merge.power, meet);
  }
}

}  // namespace rung::softmax_cuda::inline RUNG_TARGET
