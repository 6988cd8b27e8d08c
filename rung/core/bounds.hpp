// SPDX-License-Identifier: Apache-2.0
// The smaller, the larger and the clamped of numbers of one type, on hosts and devices: by value,
// else as std::min, std::max and std::clamp. Those live in <algorithm>, which adds 300 KB to the
// 2 MB that nvcc reads of a kernel's source, in each of its three passes.
#pragma once

#include "rung/core/export.hpp"

namespace rung {

template <class T>
RUNG_HD RUNG_ALWAYS_INLINE constexpr T smaller(T a, T b) {
  return b < a ? b : a;
}

template <class T>
RUNG_HD RUNG_ALWAYS_INLINE constexpr T larger(T a, T b) {
  return a < b ? b : a;
}

/// least must not be above most.
template <class T>
RUNG_HD RUNG_ALWAYS_INLINE constexpr T clamped(T value, T least, T most) {
  return value < least ? least : most < value ? most : value;
}

}  // namespace rung
