// SPDX-License-Identifier: Apache-2.0
// Shared by softmax_backward's CUDA rungs: typed kernel arguments, and the formula of an element.
#pragma once

#include <cstdint>
#include <type_traits>

#include "rung/core/bounds.hpp"
#include "rung/device/fast_exp.hpp"
#include "rung/device/rows.hpp"
#include "rung/ops/softmax_backward/op/softmax_backward.hpp"

namespace rung::softmax_backward_cuda::inline RUNG_TARGET {

// --- in kernels ----------------------------------------------------------------------------------

/// Kernel arguments: tensors and options.
template <class T, class Y>
struct GradientCall {
  using Sum = Accumulator<T>;
  using Out = Y;
  const T* y;
  const T* dy;
  Y* dx;
  Sum scale;
  bool log;
};

/// Returns the term that an element adds to the sum of its row.
template <class Sum>
__device__ __forceinline__ Sum term_of(Sum y, Sum dy, bool log) {
  return log ? dy : dy * y;
}
/// Returns dx of an element, given the sum of its row.
template <class Sum>
__device__ __forceinline__ Sum gradient_of(Sum y, Sum dy, Sum sum, Sum scale, bool log) {
  return scale * (log ? dy - fast_exp(y) * sum : (dy - sum) * y);
}

// --- on the host ---------------------------------------------------------------------------------

template <class T, class Y>
GradientCall<T, Y> call_of(const SoftmaxBackward::Args& args) {
  return {static_cast<const T*>(args.y.data), static_cast<const T*>(args.dy.data),
          static_cast<Y*>(args.dx.data), static_cast<Accumulator<T>>(args.scale), args.log};
}

/// Calls f<T, Y>() with the types of y and dx.
template <class F>
void with_types(const SoftmaxBackward::Args& args, F&& f) {
  visit<float, double, f16, bf16>(args.y.dtype, [&]<class T>() {
    if constexpr (std::is_same_v<T, float>) {
      if (args.dx.dtype == DType::f16) return f.template operator()<T, f16>();
      if (args.dx.dtype == DType::bf16) return f.template operator()<T, bf16>();
    }
    f.template operator()<T, T>();
  });
}

inline Support require_contiguous_rows(const SoftmaxBackward::Args& args) {
  return args.rows.are_contiguous() ? supported : unsupported("the rows must be contiguous");
}

}  // namespace rung::softmax_backward_cuda::inline RUNG_TARGET
