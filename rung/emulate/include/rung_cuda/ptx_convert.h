// SPDX-License-Identifier: Apache-2.0
// The PTX instruction cvt between all pairs of types.
#pragma once

#include "rung/simt/matrix.hpp"
#include "rung_cuda/ptx_types.h"

namespace rung::ptx {

template <class T>
inline constexpr bool is_real = std::is_floating_point_v<T> || is_small<T>;

/// Rounds to a type that is not wider, in one step.
template <class To, cuda::Rounding rounding, class From>
inline To narrowed(From x) {
  if constexpr (std::is_same_v<To, f16> || std::is_same_v<To, bf16>) {
    To to;
    const float value = static_cast<float>(x);
    to.bits = std::is_same_v<To, f16> ? cuda::to_half_bits(value, rounding)
                                      : cuda::to_bfloat_bits(value, rounding);
    return to;
  } else {
    return cuda::rounded<rounding>([x] {
      volatile From a = x;
      volatile To to = static_cast<To>(a);
      return static_cast<To>(to);
    });
  }
}

/// Converts a number. `whole`: first rounds to an integral value (.rni and similar). `limited`
/// (.sat, .satfinite): clamps floats to [0, 1] and integers to the range of To.
template <class To, class From, cuda::Rounding rounding, bool whole, bool limited>
inline To convert(From x) {
  if constexpr (std::is_same_v<To, tf32>) {
    return {__builtin_bit_cast(unsigned, simt::round_to_tf32(x))};
  } else if constexpr (is_small<From> && !std::is_same_v<To, From>) {
    return convert<To, float, rounding, whole, limited>(static_cast<float>(x));
  } else if constexpr (is_real<From> && std::is_integral_v<To>) {
    return cuda::clamped<To>(cuda::whole<rounding>(x));
  } else if constexpr (is_real<From>) {
    From y = x;
    if constexpr (whole) y = cuda::whole<rounding>(x);
    if constexpr (limited) y = y > From(0) ? (y < From(1) ? y : From(1)) : From(0);
    return narrowed<To, rounding>(y);
  } else if constexpr (is_real<To>) {
    return narrowed<To, rounding>(x);
  } else if constexpr (limited) {
    return cuda::clamped<To>(static_cast<double>(x));
  } else {
    return static_cast<To>(x);
  }
}
/// Converts two numbers and packs them; the first is in the upper half.
template <class To, class From, cuda::Rounding rounding, bool whole, bool limited>
inline To convert(From high, From low) {
  using Element = decltype(To{}.low);
  return {narrowed<Element, rounding>(low), narrowed<Element, rounding>(high)};
}

}  // namespace rung::ptx
