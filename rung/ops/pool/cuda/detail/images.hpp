// SPDX-License-Identifier: Apache-2.0
// Shared by pool's CUDA rungs: kernel arguments, the reduction of a window's taps, and the epilogue
// of one element.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "rung/core/require.hpp"
#include "rung/device/activate.hpp"
#include "rung/device/load.hpp"
#include "rung/device/ptx/thread.hpp"
#include "rung/device/take_axis.hpp"
#include "rung/ops/pool/op/pool.hpp"

namespace rung::pool_cuda::inline RUNG_TARGET {

// --- in kernels ----------------------------------------------------------------------------------

/// Kernel arguments of a call.
template <class T>
struct Images {
  using Element = T;
  using Sum = Accumulator<T>;
  View<const T, 4> x;
  View<T, 4> y;
  PoolAxis rows;
  PoolAxis columns;
  View<const T, 2> weights;
  View<const T, 1> bias;              // null data: no bias
  View<std::int32_t, 4> indices_i32;  // at most one of the two has data
  View<std::int64_t, 4> indices_i64;
  bool count_padding;
  Activation activation;

  [[nodiscard]] __device__ __forceinline__ Sum weight(std::int64_t i, std::int64_t j) const {
    return convert<Sum>(weights(i, j));
  }
};

/// Position of an output.
struct OutputPosition {
  std::int64_t n, c, oh, ow;
};

/// Accumulator of the taps of a window, in row-major order.
template <Pooling kind, class Sum>
struct Pooled {
  static constexpr bool is_max = kind == Pooling::max;
  static constexpr Sum identity = is_max ? -std::numeric_limits<Sum>::infinity() : Sum(0);
  Sum value = identity;
  std::int64_t position = -1;

  __device__ __forceinline__ void take(Sum v) {
    if constexpr (is_max && std::is_same_v<Sum, float>) {
      value = ptx::max_or_nan(value, v);  // one instruction instead of three
    } else if constexpr (is_max) {
      if (v > value || v != v) value = v;
    } else if constexpr (kind == Pooling::l2) {
      value += v * v;
    } else {
      value += v;
    }
  }
  /// Combines with the accumulator of another part of the window.
  __device__ __forceinline__ void join(const Pooled& other) {
    if constexpr (is_max) {
      take(other.value);
    } else {
      value += other.value;
    }
  }
  __device__ __forceinline__ void take_weighted(Sum v, Sum weight) { value += weight * v; }
  /// Updates a maximum and its position; the first tap always sets them.
  __device__ __forceinline__ void take_at(Sum v, std::int64_t where) {
    if (v > value || v != v || position < 0) {
      value = v;
      position = where;
    }
  }
  [[nodiscard]] __device__ __forceinline__ Sum result(Sum divisor) const {
    if constexpr (is_max) return value;
    if constexpr (kind == Pooling::l2) return sqrt(value);
    return value / divisor;
  }
};

/// Returns the number of taps, or the sum of weights, that divides a window's sum; 1 for max and
/// l2.
template <Pooling kind, class T>
__device__ __forceinline__ Accumulator<T> divisor_of(const Images<T>& p, std::int64_t oh,
                                                     std::int64_t ow) {
  using Sum = Accumulator<T>;
  if constexpr (kind == Pooling::max || kind == Pooling::l2) return Sum(1);
  const bool padded = p.count_padding;
  const PoolTaps rows = padded ? PoolTaps{0, p.rows.padded_taps(oh)} : p.rows.taps(oh);
  const PoolTaps columns = padded ? PoolTaps{0, p.columns.padded_taps(ow)} : p.columns.taps(ow);
  if constexpr (kind == Pooling::average) return static_cast<Sum>(rows.count() * columns.count());
  Sum sum = 0;
  for (std::int64_t i = rows.begin; i < rows.end; ++i) {
    for (std::int64_t j = columns.begin; j < columns.end; ++j) sum += p.weight(i, j);
  }
  return sum;
}

/// Stores an output after bias, activation and conversion.
template <class T>
__device__ __forceinline__ void finish(const Images<T>& p, const OutputPosition& at,
                                       Accumulator<T> value) {
  if (p.bias.data != nullptr) value += convert<Accumulator<T>>(p.bias(at.c));
  p.y(at.n, at.c, at.oh, at.ow) = convert<T>(activate<T>(p.activation, value));
}
template <class T>
__device__ __forceinline__ void write_index(const Images<T>& p, const OutputPosition& at,
                                            std::int64_t position) {
  if (p.indices_i64.data != nullptr) {
    p.indices_i64(at.n, at.c, at.oh, at.ow) = position;
  } else {
    p.indices_i32(at.n, at.c, at.oh, at.ow) = static_cast<std::int32_t>(position);
  }
}

// --- on the host ---------------------------------------------------------------------------------

template <class T>
Images<T> images_of(const Pool::Args& args) {
  const PoolOptions& options = args.options;
  Images<T> p{.x = args.x.view<const T, 4>(),
              .y = args.y.view<T, 4>(),
              .rows = args.rows,
              .columns = args.columns,
              .weights = {},
              .bias = {},
              .indices_i32 = {},
              .indices_i64 = {},
              .count_padding = options.count_padding,
              .activation = options.activation};
  if (is_given(options.weights)) p.weights = options.weights.view<const T, 2>();
  if (is_given(options.bias)) p.bias = options.bias.view<const T, 1>();
  if (args.has_indices()) {
    if (options.indices.dtype == DType::i32) {
      p.indices_i32 = options.indices.view<std::int32_t, 4>();
    } else {
      p.indices_i64 = options.indices.view<std::int64_t, 4>();
    }
  }
  return p;
}

/// Calls f.template operator()<kind, T>() for a call's kind and type.
template <class F>
void with_kind_and_type(const Pool::Args& args, F&& f) {
  visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() {
    switch (args.kind()) {
      case Pooling::max:
        return f.template operator()<Pooling::max, T>();
      case Pooling::average:
        return f.template operator()<Pooling::average, T>();
      case Pooling::l2:
        return f.template operator()<Pooling::l2, T>();
      case Pooling::weighted:
        return f.template operator()<Pooling::weighted, T>();
    }
  });
}

}  // namespace rung::pool_cuda::inline RUNG_TARGET
