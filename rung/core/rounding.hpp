// SPDX-License-Identifier: Apache-2.0
// Rounding to f32 that compilers do not optimize away.
#pragma once

namespace rung {

/// Returns the f32 nearest to `value`, as a double. The volatile keeps the rounding: g++ 12 and
/// others drop it for two adjacent doubles when they vectorize both casts at -O2 (the conversion to
/// float and back becomes a copy).
inline double nearest_f32(double value) {
  const volatile float rounded = static_cast<float>(value);
  return static_cast<double>(rounded);
}

}  // namespace rung
