// SPDX-License-Identifier: Apache-2.0
// elementwise: functors for GPUs, and the selection of one.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "rung/device/convert.hpp"
#include "rung/device/device.hpp"
#include "rung/device/gelu.hpp"
#include "rung/ops/elementwise/op/elementwise.hpp"

namespace rung::elementwise_cuda::inline RUNG_TARGET {

/// Returns f(x, y); integers are converted to unsigned, for which overflow wraps.
template <class T, class F>
__device__ __forceinline__ T wrap(T x, T y, F f) {
  if constexpr (!std::is_integral_v<T>) {
    return f(x, y);
  } else if constexpr (sizeof(T) == 8) {
    return static_cast<T>(f(static_cast<std::uint64_t>(x), static_cast<std::uint64_t>(y)));
  } else {
    return static_cast<T>(f(static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y)));
  }
}

struct Add {
  template <class T>
  __device__ __forceinline__ T operator()(T x, T y) const {
    return wrap(x, y, [](auto a, auto b) { return a + b; });
  }
};
struct Sub {
  template <class T>
  __device__ __forceinline__ T operator()(T x, T y) const {
    return wrap(x, y, [](auto a, auto b) { return a - b; });
  }
};
struct Mul {
  template <class T>
  __device__ __forceinline__ T operator()(T x, T y) const {
    return wrap(x, y, [](auto a, auto b) { return a * b; });
  }
};
struct Div {
  template <class T>
  __device__ __forceinline__ T operator()(T x, T y) const {
    return x / y;
  }
};
template <class T>
struct Axpy {
  T alpha;
  __device__ __forceinline__ T operator()(T x, T y) const { return ::fma(alpha, x, y); }
};
struct Fma {
  template <class T>
  __device__ __forceinline__ T operator()(T x, T y, T w) const {
    if constexpr (std::is_integral_v<T>) {
      return Add{}(Mul{}(x, y), w);
    } else {
      return ::fma(x, y, w);
    }
  }
};
struct Relu {
  template <class T>
  __device__ __forceinline__ T operator()(T x) const {
    if constexpr (std::is_unsigned_v<T>) {
      return x;
    } else {
      return x < T(0) ? T(0) : x;  // NaN compares false and remains
    }
  }
};
// Functions with `busy` keep the arithmetic units about as busy as memory.
struct Exp {
  static constexpr bool busy = true;
  template <class T>
  __device__ __forceinline__ T operator()(T x) const {
    return ::exp(x);
  }
};
/// Sigmoid. `brief`: for 16-bit results, with a relative error below 2^-16 before rounding.
template <bool brief>
struct Sigmoid {
  static constexpr bool busy = true;
  template <class T>
  __device__ __forceinline__ T operator()(T x) const {
    if constexpr (brief) {
      // e^-x is infinite if the result would be subnormal.
      return ptx::fast_reciprocal(1.0F + ptx::fast_exp2(x * -1.44269504F));
    } else {
      // e^-|x| cannot overflow, and e^x / (1 + e^x) keeps the digits of small results.
      const T e = ::exp(-::fabs(x));
      return (x < T(0) ? e : T(1)) / (T(1) + e);
    }
  }
};
template <bool brief>
struct Silu {
  static constexpr bool busy = true;
  template <class T>
  __device__ __forceinline__ T operator()(T x) const {
    // Below, sigmoid is subnormal, and x would amplify its rounding error; -infinity would give
    // NaN.
    constexpr T least = sizeof(T) == 8 ? T(-708.39) : T(-87.33);
    return x < least ? T(0) : x * Sigmoid<brief>{}(x);
  }
};
struct Sign {
  template <class T>
  __device__ __forceinline__ T operator()(T x) const {
    return x > T(0) ? T(1) : x < T(0) ? T(-1) : x;  // NaN and zeros remain
  }
};
struct Tanh {
  static constexpr bool busy = true;
  template <class T>
  __device__ __forceinline__ T operator()(T x) const {
    return ::tanh(x);
  }
};
template <bool brief>
struct Gelu {
  static constexpr bool busy = true;
  template <class T>
  __device__ __forceinline__ T operator()(T x) const {
    if constexpr (sizeof(T) == 8) {
      return gelu_f64(x);
    } else {
      return brief ? gelu_brief(x) : gelu_f32(x);
    }
  }
};

/// Calls use(f) with the functor of `function` for elements of T. The host selects it, so that a
/// kernel has only the registers of its own function.
template <class T, int Arity, class Use>
void with_function(ElementwiseFunction function, double alpha, const Use& use) {
  using enum ElementwiseFunction;
  constexpr bool floating = !std::is_integral_v<T>;
  if constexpr (Arity == 3) {
    use(Fma{});
  } else if constexpr (Arity == 2) {
    if (function == add) return use(Add{});
    if (function == sub) return use(Sub{});
    if (function == mul) return use(Mul{});
    if constexpr (floating) {
      if (function == div) return use(Div{});
      if (function == axpy) return use(Axpy<Accumulator<T>>{static_cast<Accumulator<T>>(alpha)});
    }
  } else {
    if (function == relu) return use(Relu{});
    if constexpr (floating) {
      if (function == exp) return use(Exp{});
      if (function == sign) return use(Sign{});
      if (function == silu) return use(Silu<sizeof(T) == 2>{});
      if (function == sigmoid) return use(Sigmoid<sizeof(T) == 2>{});
      if (function == tanh) return use(Tanh{});
      if (function == gelu) return use(Gelu<sizeof(T) == 2>{});
    }
  }
}

}  // namespace rung::elementwise_cuda::inline RUNG_TARGET
