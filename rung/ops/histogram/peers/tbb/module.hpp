// SPDX-License-Identifier: Apache-2.0
// C interface of librung_peer_histogram_tbb.so, which the histogram peer oneTBB loads.
#pragma once

#include <cstdint>

namespace rung::peer_histogram_tbb {

/// Bins of equal width: min(last, (x - low) * scale).
struct Even {
  float low, high, scale;
  std::int32_t last;
};

/// Types of the module's symbols, all extern "C"; they return false if memory runs out.
using CountBytes = bool(const std::uint8_t* x, std::int64_t size, std::int32_t* counts,
                        int threads);  // rung_histogram_tbb_u8
using CountFloats = bool(const float* x, std::int64_t size, Even even, std::int32_t* counts,
                         int threads);  // rung_histogram_tbb_f32
using Version = const char*();          // rung_histogram_tbb_version

}  // namespace rung::peer_histogram_tbb
