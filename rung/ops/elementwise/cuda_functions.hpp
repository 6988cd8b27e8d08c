// SPDX-License-Identifier: Apache-2.0
// elementwise: the functions on a GPU, and Builtin, which chooses one at run time. Kernels take any
// "map": an object whose with(body) calls body(f) for the function f to apply. The choice thus
// stands outside the loops over elements, and a user's functor (transform.cuh) needs no choice.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "rung/device/convert.hpp"
#include "rung/device/device.hpp"
#include "rung/ops/elementwise/elementwise.hpp"

namespace rung::elementwise_cuda::inline RUNG_TARGET {

/// Integers are added and multiplied without a sign, where overflow is defined and wraps.
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
      return x < T(0) ? T(0) : x;  // NaN is not less, and stays
    }
  }
};
struct Exp {
  template <class T>
  __device__ __forceinline__ T operator()(T x) const {
    return ::exp(x);
  }
};
struct Sigmoid {
  // e^-|x| cannot overflow, and e^x / (1 + e^x) keeps the digits of small results.
  template <class T>
  __device__ __forceinline__ T operator()(T x) const {
    const T e = ::exp(-::fabs(x));
    return (x < T(0) ? e : T(1)) / (T(1) + e);
  }
};
struct Tanh {
  template <class T>
  __device__ __forceinline__ T operator()(T x) const {
    return ::tanh(x);
  }
};
struct Gelu {
  template <class T>
  __device__ __forceinline__ T operator()(T x) const {
    if (x < T(-40)) return T(0);  // as the limit; -infinity * 0 would be NaN
#if defined(__CUDA_ARCH__)
    return x * normcdf(x);
#else
    // CUDA's normcdf keeps its digits in the tail; so does this.
    const long double wide = x;
    return static_cast<T>(wide * erfcl(wide * -0.70710678118654752440L) * 0.5L);
#endif
  }
};

/// The operator's own functions of one arity. Real is what elements are computed in.
template <class Real, int Arity>
struct Builtin {
  ElementwiseFunction function;
  Real alpha;

  template <class Body>
  __device__ __forceinline__ void with(const Body& body) const {
    using enum ElementwiseFunction;
    constexpr bool floating = !std::is_integral_v<Real>;
    if constexpr (Arity == 3) {
      body(Fma{});
    } else if constexpr (Arity == 2) {
      if (function == add) return body(Add{});
      if (function == sub) return body(Sub{});
      if (function == mul) return body(Mul{});
      if constexpr (floating) {
        if (function == div) return body(Div{});
        if (function == axpy) return body(Axpy<Real>{alpha});
      }
    } else {
      if (function == relu) return body(Relu{});
      if constexpr (floating) {
        if (function == exp) return body(Exp{});
        if (function == sigmoid) return body(Sigmoid{});
        if (function == tanh) return body(Tanh{});
        if (function == gelu) return body(Gelu{});
      }
    }
  }
};

/// Somebody's functor of as many values as there are inputs.
template <class F>
struct UserMap {
  F f;
  template <class Body>
  __device__ __forceinline__ void with(const Body& body) const {
    body(f);
  }
};

}  // namespace rung::elementwise_cuda::inline RUNG_TARGET
