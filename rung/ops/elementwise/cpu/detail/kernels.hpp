// SPDX-License-Identifier: Apache-2.0
// elementwise: the vector kernels that the CPU rungs share. A kernel computes a run of elements
// that are adjacent in every tensor; what is strided or repeats is brought into that form by
// whoever calls (runs.hpp).
#pragma once

#include <cstdint>

#include "rung/ops/elementwise/op/elementwise.hpp"

namespace rung::elementwise_cpu {

/// z[i] = f(x[i], y[i], w[i]) for i < count. z may be one of the operands. Operands beyond the
/// function's arity are not touched, but must be pointers that may be added to. `streaming` stores
/// are non-temporal: z is not read first, and nothing else is driven out; z must be aligned to
/// its elements and no operand, and others see it after stream_end().
using Kernel = void (*)(const void* x, const void* y, const void* w, void* z, std::int64_t count,
                        double alpha, bool streaming);

/// The kernel for the best instruction set of this machine.
Kernel kernel_f32(ElementwiseFunction function);
Kernel kernel_f64(ElementwiseFunction function);
Kernel kernel_f16(ElementwiseFunction function);
Kernel kernel_bf16(ElementwiseFunction function);
Kernel kernel_integer(ElementwiseFunction function, DType dtype);

inline Kernel find_kernel(ElementwiseFunction function, DType dtype) {
  switch (dtype) {
    case DType::f32:
      return kernel_f32(function);
    case DType::f64:
      return kernel_f64(function);
    case DType::f16:
      return kernel_f16(function);
    case DType::bf16:
      return kernel_bf16(function);
    default:
      return kernel_integer(function, dtype);
  }
}

/// Orders streaming stores before what this thread does next.
void stream_end();

}  // namespace rung::elementwise_cpu
