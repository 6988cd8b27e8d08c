// SPDX-License-Identifier: Apache-2.0
// Host code of transpose's OpenCL rungs: requirements, and kernel arguments.
#pragma once

#include <cstdint>

#include "rung/core/integer.hpp"
#include "rung/opencl/launch.hpp"
#include "rung/ops/transpose/op/transpose.hpp"

namespace rung::transpose_opencl {

inline Support require_words(const Transpose::Args& args, const Context&) {
  const Transpose::Moves& moves = args.moves;
  if (moves.empty()) return supported;
  if (moves.element_bytes != 4) return unsupported("takes elements of 4 bytes");
  if (moves.run != 1) return unsupported("takes no runs of several elements");
  return moves.batch.rank <= 1 ? supported
                               : unsupported("takes one matrix, or a batch along one axis");
}

/// The kernels' Strides, in elements.
struct Strides {
  std::int64_t batch, row, column;
};

/// Launches a transpose kernel in work-groups of side x side items, one item per element. Axis 0 of
/// the index space runs over columns of x, axis 1 over rows, axis 2 over matrices.
inline void launch_matrices(const Transpose::Args& args, const Context& context,
                            const opencl::Kernel& kernel, std::int64_t side) {
  const Transpose::Moves& moves = args.moves;
  if (moves.empty()) return;
  const bool batched = moves.batch.rank == 1;
  const Strides x{batched ? moves.batch.strides[1][0] : 0, moves.x_row, moves.x_column};
  const Strides y{batched ? moves.batch.strides[0][0] : 0, moves.y_row, moves.y_column};
  opencl::launch(
      context, kernel,
      {.groups = {ceil_div(moves.columns, side), ceil_div(moves.rows, side), moves.matrices()},
       .items = {side, side, 1}},
      opencl::Pointer{args.x.data, 4}, x, opencl::Pointer{args.y.data, 4}, y, moves.rows,
      moves.columns);
}

}  // namespace rung::transpose_opencl
