// SPDX-License-Identifier: Apache-2.0
// Mean time of a mixture of operations, for example some that hit a cache and some that miss it.
#pragma once

#include <span>

namespace rung::bench {

struct MixturePart {
  double share = 0;    // fraction of the operations
  double seconds = 0;  // per access
};

/// Returns the seconds of an operation that makes `accesses` dependent accesses and takes `other`
/// seconds in addition.
constexpr double operation_seconds(double access_seconds, double accesses, double other) {
  return accesses * access_seconds + other;
}

/// Returns the mean over the parts, weighted by their shares.
constexpr double mean_operation_seconds(std::span<const MixturePart> parts, double accesses,
                                        double other) {
  double mean = 0;
  for (const MixturePart& part : parts) {
    mean += part.share * operation_seconds(part.seconds, accesses, other);
  }
  return mean;
}

/// Returns the fraction of operations of `slow` seconds, among operations of `fast` seconds, that
/// makes the mean `target`; outside [0, 1] if no fraction does.
constexpr double slow_share_for(double target, double slow, double fast) {
  return (target - fast) / (slow - fast);
}

}  // namespace rung::bench
