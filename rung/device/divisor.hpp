// SPDX-License-Identifier: Apache-2.0
// Division by a divisor that is the same for all threads, as a multiplication and a shift.
#pragma once

#include <cstdint>

#include "rung/device/device.hpp"

namespace rung::inline RUNG_TARGET {

/// Division by an invariant divisor. For dividends n and divisors d up to 2^31 - 1, the shifted
/// product floor(n ceil(2^p / d) / 2^p) equals floor(n / d) if 2^(p - 31) >= d [H. Warren, Hacker's
/// Delight, 2nd ed., section 10-9].
struct Divisor {
  static constexpr std::int64_t max = 0x7fffffff;
  std::uint32_t value = 1;
  std::uint32_t multiplier = std::uint32_t{1} << 31;
  std::uint32_t shift = 31;

  static Divisor of(std::int64_t d) {
    Divisor divisor;
    divisor.value = static_cast<std::uint32_t>(d);
    while (std::int64_t{1} << (divisor.shift - 31) < d) ++divisor.shift;
    const std::uint64_t power = std::uint64_t{1} << divisor.shift;
    divisor.multiplier = static_cast<std::uint32_t>((power + divisor.value - 1) / divisor.value);
    return divisor;
  }
  [[nodiscard]] __device__ __forceinline__ std::uint32_t quotient(std::uint32_t n) const {
    return static_cast<std::uint32_t>((std::uint64_t{n} * multiplier) >> shift);
  }
  /// Divides `n`: returns the remainder and leaves the quotient in `n`.
  __device__ __forceinline__ int take(std::uint32_t& n) const {
    const std::uint32_t whole = quotient(n);
    const std::uint32_t rest = n - whole * value;
    n = whole;
    return static_cast<int>(rest);
  }
};

}  // namespace rung::inline RUNG_TARGET
