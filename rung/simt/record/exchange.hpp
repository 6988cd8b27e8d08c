// SPDX-License-Identifier: Apache-2.0
// Warp operations whose mask names lanes that do not take part, and barriers that lanes of a warp
// skip. CUDA leaves undefined what a lane reads from such a lane, and any operation that a lane
// skips which has not exited. Internal to simt/.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rung::simt::record {

/// Results of shuffles that read a lane which does not take part. Distinctive as integers, floats
/// and doubles, so that uses of them can be recognized: NaN, a large number and a large negative
/// one, whose sum is not 0.
inline constexpr std::uint64_t undefined_lane_values[] = {
    0x7ffd3c917fd3c91bu, 0x7dcd3c917dd3c91bu, 0xfd8d3c91fd93c91bu};

/// Shuffle of one lane.
struct LaneShuffle {
  std::uint64_t given = 0;  // that the lane sends
  std::uint64_t got = 0;
  int source = 0;  // lane that it reads
};

/// Call that a value or a report stems from.
struct LaneCall {
  const char* operation = "";
  std::uint16_t site = 0;
  std::uint32_t mask = 0;
};

/// Masks of one warp that named absent lanes, as long as their consequences are looked for.
struct LaneExchanges {
  /// Value that a lane may have derived from an undefined one.
  struct Doubt {
    std::uint64_t given = 0;  // by the lane, in the same shuffle
    std::uint64_t got = 0;
    bool given_doubtful = false, got_doubtful = false;
    LaneCall call;  // that read the absent lane
    std::uint8_t reader = 0, source = 0;
  };
  /// Call that lanes of its mask skipped.
  struct Skip {
    LaneCall call;
    bool barrier = false;  // of the block, to which the other lanes of the warp come
    bool fresh = true;     // the list that shows where the missing lanes went is yet to be read
    std::uint32_t callers = 0, missing = 0;
    std::vector<std::uint16_t> sites;  // where the missing lanes went, and no caller had been
  };
  std::vector<Doubt> doubts[32];  // per lane, the latest
  std::vector<Skip> skips;
};

/// Returns true if `value` of `bytes` bytes is what a lane has made of an undefined value: the
/// value itself, or a sum or the like of what the shuffle was given and got.
bool is_made_of(const LaneExchanges::Doubt& doubt, std::uint64_t value, int bytes);

/// "lane 5", "lanes 16 to 31", "lanes 1, 2 and 4"
std::string lanes_text(std::uint32_t lanes);

}  // namespace rung::simt::record
