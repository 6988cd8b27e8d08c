// SPDX-License-Identifier: Apache-2.0
// take_axis(index, extent): splits a linear index into indices of axes, from the last axis on.
#pragma once

#include <cstdint>

#include "rung/device/device.hpp"

namespace rung::inline RUNG_TARGET {

/// Divides `index` by `extent` (below 2^31): returns the remainder and leaves the quotient in
/// `index`. Divides 32-bit numbers if possible, which is several times cheaper.
__device__ __forceinline__ std::int64_t take_axis(std::int64_t& index, std::int64_t extent) {
  if (index <= 0xffffffff) {
    const auto narrow = static_cast<std::uint32_t>(index);
    const std::uint32_t quotient = narrow / static_cast<std::uint32_t>(extent);
    index = quotient;
    return narrow - quotient * static_cast<std::uint32_t>(extent);
  }
  const std::int64_t quotient = index / extent;
  const std::int64_t rest = index - quotient * extent;
  index = quotient;
  return rest;
}

}  // namespace rung::inline RUNG_TARGET
