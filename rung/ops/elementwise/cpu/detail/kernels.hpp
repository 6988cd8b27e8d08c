// SPDX-License-Identifier: Apache-2.0
// elementwise: what the CPU rungs share, each defined in the rung that introduces it.
#pragma once

#include <cstdint>

#include "rung/cpu/team.hpp"
#include "rung/ops/elementwise/op/elementwise.hpp"

namespace rung::elementwise_cpu {

/// Computes a run of elements that are adjacent in every tensor: z[i] = f(x[i], y[i], w[i]) for
/// i < count. z may be one of the operands. Operands beyond the
/// function's arity are not touched, but must be pointers that may be added to. `streaming` stores
/// are non-temporal: z is not read first, and nothing else is driven out; z must be aligned to
/// its elements and no operand, and others see it after cpu::end_streams().
using Kernel = void (*)(const void* x, const void* y, const void* w, void* z, std::int64_t count,
                        double alpha, bool streaming);

/// 020: the kernel for the best instruction set of this machine, of one part of the types.
template <class T>
Kernel kernel_for(DType dtype, ElementwiseFunction function);
template <>
Kernel kernel_for<float>(DType dtype, ElementwiseFunction function);
template <>
Kernel kernel_for<double>(DType dtype, ElementwiseFunction function);
template <>
Kernel kernel_for<f16>(DType dtype, ElementwiseFunction function);
template <>
Kernel kernel_for<bf16>(DType dtype, ElementwiseFunction function);
template <>
Kernel kernel_for<int>(DType dtype, ElementwiseFunction function);  // all integers

inline Kernel find_kernel(ElementwiseFunction function, DType dtype) {
  switch (dtype) {
    case DType::f32:
      return kernel_for<float>(dtype, function);
    case DType::f64:
      return kernel_for<double>(dtype, function);
    case DType::f16:
      return kernel_for<f16>(dtype, function);
    case DType::bf16:
      return kernel_for<bf16>(dtype, function);
    default:
      return kernel_for<int>(dtype, function);
  }
}

/// 030: computes a range of elements in the order of args.layout on the calling thread. `streaming`
/// requests non-temporal stores, which are used where they pay.
void strided(const Elementwise::Args& args, cpu::Range elements, bool streaming);

}  // namespace rung::elementwise_cpu
