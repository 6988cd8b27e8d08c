// SPDX-License-Identifier: Apache-2.0
// Runs several iterations as single ones: results alternate between y and one buffer of the
// workspace, such that the last iteration writes y.
#pragma once

#include <cstddef>

#include "rung/ops/stencil/op/stencil.hpp"

namespace rung::stencil_detail {

/// Returns the arguments of a single iteration that reads `x` and writes `y`, of the same shape.
Stencil::Args one_step(const Stencil::Args& args, const ConstTensorRef& x, const TensorRef& y);

/// Returns the bytes of the buffer between iterations, a multiple of 256; 0 for a single iteration.
std::size_t step_bytes(const Stencil::Args& args);

/// Calls step(args, scratch) for each iteration, with args.iterations = 1. `scratch` is
/// scratch_bytes of the workspace, for the rung.
template <class Step>
void for_each_step(const Stencil::Args& args, Context& context, std::size_t scratch_bytes,
                   Step&& step) {
  const std::size_t between = step_bytes(args);
  std::byte* const workspace =
      between + scratch_bytes == 0
          ? nullptr
          : static_cast<std::byte*>(context.workspace(between + scratch_bytes));
  std::byte* const scratch = workspace == nullptr ? nullptr : workspace + between;
  if (args.iterations == 1) {
    step(args, scratch);
    return;
  }
  const TensorRef buffer(static_cast<void*>(workspace), args.y.dtype, args.y.shape, args.y.device);
  ConstTensorRef from = args.x;
  for (int i = args.iterations; i > 0; --i) {
    const TensorRef to = i % 2 == 1 ? args.y : buffer;
    step(one_step(args, from, to), scratch);
    from = to;
  }
}

}  // namespace rung::stencil_detail
