// SPDX-License-Identifier: Apache-2.0
// reduce / single pass: what its kernels share, all with loads of 16 bytes - along contiguous rows
// (120_single_pass_rows.cuh; 120_single_pass_straight_rows.cuh for the plainest) and across
// contiguous columns (120_single_pass_columns.cuh). The rung's file is compiled once per type.
//
// Idea, Changes, Cost and Limits stand in 120_single_pass_last_block.cu,
// whose rung this is a part of.
#pragma once

#include "rung/device/dependent.hpp"
#include "rung/ops/reduce/cuda/detail/single_pass.hpp"

namespace rung::reduce_cuda::inline RUNG_TARGET {

/// The folds that have fast kernels, by element type: visit(fold).
template <class T, bool search, class Visit>
bool visit_folds(const Reduce::Args& args, const Visit& visit) {
  using reduce_fold::Fold;
  const Fold fold = reduce_fold::fold_of(args.operation);
  constexpr bool floating = !std::is_integral_v<T>;
  switch (fold) {
    case Fold::sum:
      visit(SumFold<T>{});
      return true;
    case Fold::squares:
      if constexpr (floating) visit(SquareFold<T>{});
      return floating;
    case Fold::product:
      return false;
    default: {
      const Flip flip{fold == Fold::greatest};
      if (!args.is_arg()) {
        visit(ExtremeFold<T>{flip});
        return true;
      }
      if constexpr (search) visit(PositionFold<T>{flip});
      return search;
    }
  }
}

inline constexpr int load_bytes = 16;
inline constexpr int loads_at_once = 4;

}  // namespace rung::reduce_cuda::inline RUNG_TARGET
