// SPDX-License-Identifier: Apache-2.0
// Shared by softmax's CUDA rungs: typed kernel arguments, and the online maximum and sum.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "rung/core/bounds.hpp"
#include "rung/device/fast_exp.hpp"
#include "rung/device/ptx/thread.hpp"
#include "rung/device/rows.hpp"
#include "rung/ops/softmax/op/softmax.hpp"

namespace rung::softmax_cuda::inline RUNG_TARGET {

// --- in kernels ----------------------------------------------------------------------------------

/// Kernel arguments: tensors and options.
template <class T, class Y>
struct SoftmaxCall {
  using Sum = Accumulator<T>;
  using Out = Y;
  const T* x;
  Y* y;
  Sum scale;
  bool log;
};

__device__ __forceinline__ float logarithm_of(float value) { return logf(value); }
__device__ __forceinline__ double logarithm_of(double value) { return log(value); }

template <class Sum>
__device__ __forceinline__ Sum reciprocal(Sum sum) {
  return sum == 0 ? Sum(0) : 1 / sum;
}
template <class Sum>
__device__ __forceinline__ Sum logarithm(Sum sum) {
  return sum == 0 ? Sum(0) : logarithm_of(sum);
}

/// Calls f(i, values) for elements i, i + stride, i + 2 stride, i + 3 stride of a row, starting at
/// `first`. All four are loaded before the first is used; past the row they are -infinity, whose
/// exponential is 0.
inline constexpr int batch = 4;
template <class Sum, class T, class F>
__device__ __forceinline__ void for_each_batch(const T* x, std::int64_t length, std::int64_t step,
                                               unsigned first, unsigned stride, F&& f) {
  for (std::int64_t i = first; i < length; i += batch * stride) {
    Sum values[batch];
#pragma unroll
    for (int k = 0; k < batch; ++k) {
      const std::int64_t at = i + k * stride;
      values[k] = -std::numeric_limits<Sum>::infinity();
      if (at < length) values[k] = convert<Sum>(x[at * step]);
    }
    f(i, values);
  }
}

/// Online maximum, and the sum of exponentials relative to it.
template <class Sum>
struct Running {
  Sum maximum = no_maximum<Sum>;
  Sum sum = 0;
  /// Adds a batch; rescales the sum once per batch.
  __device__ __forceinline__ void add(const Sum (&values)[batch], Sum scale) {
    Sum larger = maximum;
#pragma unroll
    for (const Sum value : values) larger = Larger{}(larger, value);
    sum *= fast_exp((maximum - larger) * scale);
    maximum = larger;
#pragma unroll
    for (const Sum value : values) sum += fast_exp((value - maximum) * scale);
  }
};

/// Returns the result for x; `last` is the reciprocal of the sum or, if `log`, its logarithm.
template <class Sum>
__device__ __forceinline__ Sum result_of(Sum x, Sum maximum, Sum scale, Sum last, bool log) {
  const Sum z = (x - maximum) * scale;
  return log ? z - last : fast_exp(z) * last;
}
/// Runs the second pass over a row: loads x again and stores every result.
template <class Sum, class T, class Y>
__device__ __forceinline__ void write_results(const T* x, Y* y, std::int64_t length,
                                              const std::int64_t (&steps)[2], unsigned first,
                                              unsigned stride, Sum maximum, Sum sum, Sum scale,
                                              bool log) {
  const Sum last = log ? logarithm(sum) : reciprocal(sum);
  for_each_batch<Sum>(x, length, steps[0], first, stride,
                      [&](std::int64_t i, const Sum(&values)[batch]) {
#pragma unroll
                        for (int k = 0; k < batch; ++k) {
                          const std::int64_t at = i + k * stride;
                          if (at >= length) continue;
                          const Sum result = result_of(values[k], maximum, scale, last, log);
                          y[at * steps[1]] = convert<Y>(result);
                        }
                      });
}

// --- on the host ---------------------------------------------------------------------------------

template <class T, class Y>
SoftmaxCall<T, Y> call_of(const Softmax::Args& args) {
  return {static_cast<const T*>(args.x.data), static_cast<Y*>(args.y.data),
          static_cast<Accumulator<T>>(args.scale), args.log};
}
/// Calls f<T, Y>() with the types of x and y.
template <class F>
void with_types(const Softmax::Args& args, F&& f) {
  visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() {
    if constexpr (std::is_class_v<T>) {
      if (args.y.dtype == DType::f32) return f.template operator()<T, float>();
    }
    f.template operator()<T, T>();
  });
}
inline Support require_contiguous_rows(const Softmax::Args& args) {
  return args.rows.are_contiguous() ? supported : unsupported("the rows must be contiguous");
}

}  // namespace rung::softmax_cuda::inline RUNG_TARGET
