// SPDX-License-Identifier: Apache-2.0
// Heads: kernel arguments with typed views of the tensors, and arithmetic of the softmax.
#pragma once

#include <cstdint>
#include <limits>

#include "rung/core/dtype.hpp"
#include "rung/core/view.hpp"
#include "rung/device/convert.hpp"
#include "rung/device/device.hpp"
#include "rung/device/e4m3.hpp"
#include "rung/device/ptx/thread.hpp"
#include "rung/ops/attention/op/attention.hpp"
#include "rung/ops/attention/shared/heads.hpp"
#include "rung/ops/attention/shared/rows.hpp"

namespace rung::attention_cuda::inline RUNG_TARGET {

/// Kernel parameters.
template <class T, class K = T>
using Heads = AttentionHeads<T, K>;

/// Initial value of maxima: finite, so that -infinity minus it is -infinity, not NaN. A sum of 0 at
/// the end identifies a fully masked query.
template <class Sum>
inline constexpr Sum no_maximum = std::numeric_limits<Sum>::lowest();

template <class Sum>
inline constexpr Sum log2_e = Sum(1.44269504088896340736L);

/// Returns exp(z). For f32, ex2.approx adds a relative error of 2^-22 and its argument is rounded
/// to half an ulp.
__device__ __forceinline__ float power(float z) { return ptx::fast_exp2(z * log2_e<float>); }
__device__ __forceinline__ double power(double z) { return exp(z); }

/// Returns the factor that normalizes a query's o: 1 / sum, or 0 if the sum is 0. log_sum() below
/// returns its lse, -infinity if the sum is 0.
__device__ __forceinline__ float reciprocal(float sum) { return sum == 0 ? 0.0F : 1 / sum; }
__device__ __forceinline__ double reciprocal(double sum) { return sum == 0 ? 0.0 : 1 / sum; }
__device__ __forceinline__ float log_sum(float maximum, float sum) {
  return sum == 0 ? -std::numeric_limits<float>::infinity() : maximum + logf(sum);
}
__device__ __forceinline__ double log_sum(double maximum, double sum) {
  return sum == 0 ? -std::numeric_limits<double>::infinity() : maximum + log(sum);
}

/// Adds the sink of head h, if there are sinks, to a row's maximum and sum of weights. Returns the
/// factor by which this changes the weights of its keys.
template <class T, class K, class Sum>
__device__ __forceinline__ Sum add_sink(const Heads<T, K>& p, std::int64_t h, Sum& maximum,
                                        Sum& sum) {
  if (p.sinks.data == nullptr) return 1;
  const Sum greatest = larger(maximum, p.sinks(h));
  const Sum factor = power(maximum - greatest);
  sum = sum * factor + power(p.sinks(h) - greatest);
  maximum = greatest;
  return factor;
}

// --- on the host ---------------------------------------------------------------------------------

inline Support require_f32(const Attention::Args& args, const Context&) {
  return args.q.dtype == DType::f32 ? supported : unsupported("f32 only");
}

}  // namespace rung::attention_cuda::inline RUNG_TARGET
