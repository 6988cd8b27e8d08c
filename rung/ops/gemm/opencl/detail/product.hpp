// SPDX-License-Identifier: Apache-2.0
// Host side shared by gemm's OpenCL rungs: supported calls, and kernel arguments.
#pragma once

#include <cstdint>

#include "rung/core/integer.hpp"
#include "rung/opencl/launch.hpp"
#include "rung/ops/gemm/op/gemm.hpp"

namespace rung::gemm_opencl {

/// Strides argument of the kernels, in elements.
struct Strides {
  std::int64_t batch, row, column;
};
inline Strides strides_of(const ConstTensorRef& matrix) {
  return {matrix.strides[0], matrix.strides[1], matrix.strides[2]};
}

inline Support require_plain_f32(const Gemm::Args& args, const Context&) {
  if (args.a.dtype != DType::f32) return unsupported("takes f32 operands");
  return args.has_epilogue() ? unsupported("takes no bias, activation or residual") : supported;
}

/// Launches a gemm kernel with `rows` x `columns` of C per work-group of `items` items. Axis 0 of
/// the index space runs along columns of C, or rows if `along_rows`; axis 2 along the batch.
inline void launch_product(const Gemm::Args& args, const Context& context,
                           const opencl::Kernel& kernel, std::int64_t rows, std::int64_t columns,
                           const opencl::LaunchExtent& items, bool along_rows = false) {
  const std::int64_t down = ceil_div(args.m(), rows);
  const std::int64_t across = ceil_div(args.n(), columns);
  // With alpha = 0, A and B are not read: the sum is empty.
  const std::int64_t k = args.alpha == 0 ? 0 : args.k();
  const auto operand = [&](const ConstTensorRef& tensor) {
    return opencl::Pointer{k == 0 ? nullptr : tensor.data, sizeof(float)};
  };
  opencl::launch(context, kernel,
                 {.groups = {along_rows ? down : across, along_rows ? across : down, args.batch()},
                  .items = items},
                 operand(args.a), strides_of(args.a), operand(args.b), strides_of(args.b),
                 opencl::pointer_to(args.c), strides_of(args.c), args.m(), args.n(), k,
                 static_cast<float>(args.alpha), static_cast<float>(args.beta));
}

}  // namespace rung::gemm_opencl
