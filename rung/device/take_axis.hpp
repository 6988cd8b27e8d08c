// SPDX-License-Identifier: Apache-2.0
// take_axis(index, extent): a linear index, axis by axis from the last to the first.
#pragma once

#include <cstdint>

#include "rung/device/device.hpp"

namespace rung::inline RUNG_TARGET {

/// A linear index less its remainder by `extent`, which is returned. Divisions of 32 bits are
/// several times cheaper. Extents are below 2^31.
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
