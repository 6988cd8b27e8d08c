// SPDX-License-Identifier: Apache-2.0
// Rounding that optimizers keep.
#pragma once

namespace rung {

/// The f32 nearest to `value`, as a double. Through a volatile, because g++ 12 and others drop the
/// rounding of two adjacent doubles when they vectorize both casts at -O2 (double -> float ->
/// double becomes a copy).
inline double nearest_f32(double value) {
  const volatile float rounded = static_cast<float>(value);
  return static_cast<double>(rounded);
}

}  // namespace rung
