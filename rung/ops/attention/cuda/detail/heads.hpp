// SPDX-License-Identifier: Apache-2.0
// Heads: kernel arguments with typed views of the tensors, and the mask.
#pragma once

#include <cstdint>
#include <limits>

#include "rung/core/dtype.hpp"
#include "rung/core/view.hpp"
#include "rung/device/convert.hpp"
#include "rung/device/device.hpp"
#include "rung/device/ptx/thread.hpp"
#include "rung/ops/attention/op/attention.hpp"
#include "rung/ops/attention/shared/mask.hpp"

namespace rung::attention_cuda::inline RUNG_TARGET {

/// Kernel parameters. q and o are batch x heads x queries x width, k and v batch x kv_heads x keys
/// x width; v and o have value_width instead of width.
template <class T>
struct Heads {
  using Element = T;
  using Sum = Accumulator<T>;

  View<const T, 4> q, k, v;
  View<T, 4> o;
  View<Sum, 3> lse;                         // no data: not requested
  View<const std::int32_t, 1> key_lengths;  // no data: all Sk keys exist
  Sum scale;
  bool causal;
  std::int64_t window;  // 0: none
  int group;            // heads of q per head of k and v

  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE std::int64_t batch() const { return q.shape[0]; }
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE std::int64_t heads() const { return q.shape[1]; }
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE std::int64_t queries() const { return q.shape[2]; }
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE std::int64_t width() const { return q.shape[3]; }
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE std::int64_t kv_heads() const { return k.shape[1]; }
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE std::int64_t keys() const { return k.shape[2]; }
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE std::int64_t value_width() const { return v.shape[3]; }

  /// Returns the number of keys of batch element b.
  [[nodiscard]] __device__ __forceinline__ std::int64_t length(std::int64_t b) const {
    return key_lengths.data != nullptr ? key_length(key_lengths(b), keys()) : keys();
  }
  [[nodiscard]] __device__ __forceinline__ KeyMask<std::int64_t> mask(std::int64_t b) const {
    return {queries(), length(b), causal, window};
  }
  __device__ __forceinline__ void write_lse(std::int64_t b, std::int64_t h, std::int64_t i,
                                            Sum value) const {
    if (lse.data != nullptr) lse(b, h, i) = value;
  }
};

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

// --- on the host ---------------------------------------------------------------------------------

template <class T>
Heads<T> heads_of(const Attention::Args& args) {
  using Sum = Accumulator<T>;
  Heads<T> heads{.q = args.q.view<const T, 4>(),
                 .k = args.k.view<const T, 4>(),
                 .v = args.v.view<const T, 4>(),
                 .o = args.o.view<T, 4>(),
                 .lse = {},
                 .key_lengths = {},
                 .scale = static_cast<Sum>(args.options.scale),
                 .causal = args.options.causal,
                 .window = args.options.window,
                 .group = static_cast<int>(args.group())};
  if (args.has_lse()) heads.lse = args.options.lse.view<Sum, 3>();
  if (args.has_lengths()) {
    heads.key_lengths = args.options.key_lengths.view<const std::int32_t, 1>();
  }
  return heads;
}

/// Returns whether every row, whose elements are contiguous, starts at a multiple of `bytes`, so
/// that it can be copied in pieces of that size.
inline bool starts_rows_at(const ConstTensorRef& heads, std::int64_t bytes) {
  const auto element = static_cast<std::int64_t>(size_of(heads.dtype));
  for (int axis = 0; axis < 3; ++axis) {
    if (heads.shape[axis] > 1 && heads.strides[axis] * element % bytes != 0) return false;
  }
  return reinterpret_cast<std::uintptr_t>(heads.data) % static_cast<std::uintptr_t>(bytes) == 0;
}

inline Support require_f32(const Attention::Args& args, const Context&) {
  return args.q.dtype == DType::f32 ? supported : unsupported("f32 only");
}

}  // namespace rung::attention_cuda::inline RUNG_TARGET
