// SPDX-License-Identifier: Apache-2.0
// Minimum, maximum and clamp of values of one type, on host and device. They return by value and
// otherwise match std::min, std::max and std::clamp, whose header <algorithm> adds 300 KB to the 2
// MB that nvcc reads per kernel source, in each of its three passes.
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

/// Clamps `value` to [least, most]; requires least <= most.
template <class T>
RUNG_HD RUNG_ALWAYS_INLINE constexpr T clamped(T value, T least, T most) {
  return value < least ? least : most < value ? most : value;
}

}  // namespace rung
