// SPDX-License-Identifier: Apache-2.0
// Mean time of operations of which parts take different times: some hit a cache, some miss it.
#pragma once

#include <span>

namespace rung::bench {

struct MixturePart {
  double share = 0;    // of the operations
  double seconds = 0;  // per access
};

/// One operation: `accesses` accesses one after another, and `other` seconds beside them.
constexpr double operation_seconds(double access_seconds, double accesses, double other) {
  return accesses * access_seconds + other;
}

/// The mean over the parts, weighted by their shares.
constexpr double mean_operation_seconds(std::span<const MixturePart> parts, double accesses,
                                        double other) {
  double mean = 0;
  for (const MixturePart& part : parts) {
    mean += part.share * operation_seconds(part.seconds, accesses, other);
  }
  return mean;
}

/// The share of operations of `slow` seconds, the others taking `fast`, with which the mean is
/// `target`; outside 0 to 1 where no share gives it.
constexpr double slow_share_for(double target, double slow, double fast) {
  return (target - fast) / (slow - fast);
}

}  // namespace rung::bench
