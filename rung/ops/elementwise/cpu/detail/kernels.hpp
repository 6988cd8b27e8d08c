// SPDX-License-Identifier: Apache-2.0
// elementwise: kernels of the CPU rungs, each defined in the rung that introduces it.
#pragma once

#include <cstdint>

#include "rung/cpu/team.hpp"
#include "rung/ops/elementwise/op/elementwise.hpp"

namespace rung::elementwise_cpu {

/// Kernel that computes z[i] = f(x[i], y[i], w[i]) for i < count, with elements adjacent in every
/// tensor. z may be an operand. Operands beyond the function's arity are not accessed, but must be
/// pointers valid for arithmetic. `streaming`: non-temporal stores, without write-allocate and
/// cache pollution; z must then be aligned to its element size and must not be an operand; other
/// threads see z after cpu::end_streams().
using Kernel = void (*)(const void* x, const void* y, const void* w, void* z, std::int64_t count,
                        double alpha, bool streaming);

/// 020: returns the kernel for the instruction set in use; T is the element type; int stands for
/// all integers.
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
/// requests non-temporal stores, used if they pay.
void strided(const Elementwise::Args& args, cpu::Range elements, bool streaming);

}  // namespace rung::elementwise_cpu
