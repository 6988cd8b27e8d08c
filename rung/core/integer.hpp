// SPDX-License-Identifier: Apache-2.0
// Integer division and rounding on host and device. Arguments must not be negative.
#pragma once

#include <type_traits>

#include "rung/core/export.hpp"

namespace rung {

/// Returns a / b rounded up, in the common type: ceil_div(n, 16) of a 64-bit n has 64 bits.
template <class A, class B>
RUNG_HD RUNG_ALWAYS_INLINE constexpr std::common_type_t<A, B> ceil_div(A a, B b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

/// Returns the least multiple of b that is at least a.
template <class A, class B>
RUNG_HD RUNG_ALWAYS_INLINE constexpr std::common_type_t<A, B> round_up(A a, B b) {
  return ceil_div(a, b) * b;
}

}  // namespace rung
