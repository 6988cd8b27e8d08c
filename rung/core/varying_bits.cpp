// SPDX-License-Identifier: Apache-2.0
// Registry of rungs whose results vary in their bits from run to run.
#include "rung/core/varying_bits.hpp"

namespace rung {
namespace {

const VaryingBits* newest = nullptr;

}  // namespace

VaryingBits::VaryingBits(const RungInfo& rung) noexcept : rung_(rung), next_(newest) {
  newest = this;
}

bool VaryingBits::of(const RungInfo& rung) noexcept {
  for (const VaryingBits* one = newest; one != nullptr; one = one->next_) {
    if (&one->rung_ == &rung) return one->rung_.teaching;  // only a teaching rung may vary
  }
  return false;
}

}  // namespace rung
