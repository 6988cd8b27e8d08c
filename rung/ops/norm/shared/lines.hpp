// SPDX-License-Identifier: Apache-2.0
// Rows and columns of norm's tensors, as all kernels iterate over them; for CPUs and GPUs.
#pragma once

#include <array>
#include <cstdint>

#include "rung/ops/norm/op/norm.hpp"

namespace rung::norm_lines {

/// Indices of the tensors in Lines' rows and columns.
enum RowTensor : int { row_x, row_residual, row_y, row_sum, row_mean, row_rstd };
enum ColumnTensor : int {
  column_x,
  column_residual,
  column_y,
  column_sum,
  column_gamma,
  column_beta
};

/// Offset of element (row, column) of each tensor: the sum of its offsets in `rows` and in
/// `columns`. Absent tensors have x's strides.
struct Lines {
  Collapsed<6> rows;     // indexed by RowTensor
  Collapsed<6> columns;  // indexed by ColumnTensor

  /// Returns whether rows of every tensor are contiguous, and gamma and beta, too.
  [[nodiscard]] bool contiguous_columns() const {
    if (columns.rank == 0) return true;
    for (const auto& strides : columns.strides) {
      if (columns.rank != 1 || strides[0] != 1) return false;
    }
    return true;
  }
};

/// Returns the lines. The order of rows and of elements in a row does not matter, so axes are
/// sorted by stride, smallest last, and merged.
inline Lines lines_of(const Norm::Args& args) {
  const auto strides = [&](const auto& tensor) {
    return tensor.data != nullptr ? tensor.strides : args.x.strides;
  };
  const Extents residual = strides(args.residual);
  const Extents y = args.y.strides;
  const Extents sum = strides(args.sum);
  return {collapse<6>(args.x.shape,
                      {args.x.strides, residual, y, sum, strides(args.mean), strides(args.rstd)},
                      ~args.normalized, AxisOrder::by_stride),
          collapse<6>(args.x.shape,
                      {args.x.strides, residual, y, sum, strides(args.gamma), strides(args.beta)},
                      args.normalized, AxisOrder::by_stride)};
}

}  // namespace rung::norm_lines
