// SPDX-License-Identifier: Apache-2.0
// Joining what two know.
#include "rung/simt/record/vector_clock.hpp"

#include <algorithm>

namespace rung::simt::record {

const Clocks* VectorClock::of(std::uint32_t block) const {
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), block,
                                   [](const Entry& e, std::uint32_t b) { return e.first < b; });
  return at != entries_.end() && at->first == block ? at->second.get() : nullptr;
}

VectorClockRef join(const VectorClockRef& a, const VectorClockRef& b) {
  if (a == nullptr || a == b) return b;
  if (b == nullptr) return a;
  std::vector<VectorClock::Entry> both;
  both.reserve(std::max(a->entries().size(), b->entries().size()) + 1);
  auto left = a->entries().begin();
  auto right = b->entries().begin();
  while (left != a->entries().end() || right != b->entries().end()) {
    if (right == b->entries().end() || (left != a->entries().end() && left->first < right->first)) {
      both.push_back(*left++);
    } else if (left == a->entries().end() || right->first < left->first) {
      both.push_back(*right++);
    } else {
      if (left->second == right->second) {
        both.push_back(*left);
      } else {
        auto clocks = std::make_shared<Clocks>(*left->second);
        join(*clocks, *right->second);
        both.emplace_back(left->first, std::move(clocks));
      }
      ++left;
      ++right;
    }
  }
  return std::make_shared<const VectorClock>(std::move(both));
}

}  // namespace rung::simt::record
