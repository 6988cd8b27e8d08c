// SPDX-License-Identifier: Apache-2.0
// Warp operations whose mask names absent lanes, and barriers that lanes of a warp skip. In CUDA a
// value read from an absent lane is undefined, and so is any operation skipped by a lane of its
// mask that has not exited. Internal to simt/.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rung::simt::record {

/// Results of shuffles that read an absent lane: NaN, and a large positive and a large negative
/// number whose sum is not 0. They are distinctive as integers, floats and doubles, so that uses of
/// them are recognizable.
inline constexpr std::uint64_t undefined_lane_values[] = {0x7ffd3c917fd3c91bu, 0x7dcd3c917dd3c91bu,
                                                          0xfd8d3c91fd93c91bu};

/// Shuffle operands and result of one lane.
struct LaneShuffle {
  std::uint64_t given = 0;  // sent by the lane
  std::uint64_t got = 0;
  int source = 0;  // lane that it reads
};

/// Warp operation to which a value or a report is traced back.
struct LaneCall {
  const char* operation = "";
  std::uint16_t site = 0;
  std::uint32_t mask = 0;
};

/// Warp operations with absent lanes, kept per warp while their consequences are tracked.
struct LaneExchanges {
  /// A value that a lane may have derived from an undefined value.
  struct Doubt {
    std::uint64_t given = 0;  // sent by the lane in the same shuffle
    std::uint64_t got = 0;
    bool given_doubtful = false, got_doubtful = false;
    LaneCall call;  // the shuffle that read the absent lane
    std::uint8_t reader = 0, source = 0;
  };
  /// A warp operation that lanes of its mask skipped.
  struct Skip {
    LaneCall call;
    bool barrier = false;  // a block barrier at which the warp's other lanes arrived
    bool fresh = true;     // the list with the missing lanes' path is not yet processed
    std::uint32_t callers = 0, missing = 0;
    std::vector<std::uint16_t> sites;  // sites of the missing lanes that no caller has reached
  };
  std::vector<Doubt> doubts[32];  // per lane: latest doubtful values
  std::vector<Skip> skips;
};

/// Returns true if `value`, of `bytes` bytes, derives from an undefined value: it equals the
/// undefined value, or combines the lane's operand with the result of the shuffle.
bool is_made_of(const LaneExchanges::Doubt& doubt, std::uint64_t value, int bytes);

/// Formats a set of lanes: "lane 5", "lanes 16 to 31", "lanes 1, 2 and 4".
std::string lanes_text(std::uint32_t lanes);

}  // namespace rung::simt::record
