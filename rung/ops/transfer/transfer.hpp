// SPDX-License-Identifier: Apache-2.0
// transfer: a function of data in host memory, computed on a GPU: copy in, compute, copy out.
//
//   y = f(x)        f a function of one operand of elementwise: relu, sigmoid, tanh, gelu, exp,
//                   silu, sign
//
// Shapes   equal, contiguous (C order).
// Layout   x and y in host memory, pageable or page-locked; data pass through device memory.
// Types    f32, f64, f16, bf16; relu also i32, i64, u8. Accuracy is that of elementwise.
// Aliasing y may be x exactly; otherwise they must not overlap. Overlap is decided by address
//          ranges, from the lowest to the highest byte that a tensor touches, so that tensors whose
//          elements interleave are refused.
// Waits    y is complete when the call returns. The call cannot be captured in a CUDA graph.
// Memory   device and page-locked buffers belong to the context, grow to the largest need seen and
//          are kept; chunked_streams needs 64 MiB on the device and 128 MiB of page-locked memory
//          at most, whatever the size.
// Threads  pageable memory is copied by every core that this process may use.
// Errors   Error(invalid_argument) for shapes, types, devices, aliasing; Error(unsupported) on cpu.
// Source   CUDA C++ Best Practices Guide, "Asynchronous and overlapping transfers".
#pragma once

#include "rung/core/context.hpp"
#include "rung/core/export.hpp"
#include "rung/core/pick.hpp"
#include "rung/core/tensor_ref.hpp"
#include "rung/ops/elementwise/elementwise.hpp"

namespace rung {

struct TransferOptions {
  ElementwiseFunction function = ElementwiseFunction::relu;
};

RUNG_API void transfer(Context& context, const ConstTensorRef& x, const TensorRef& y,
                       const TransferOptions& options = {}, Pick pick = best);

}  // namespace rung
