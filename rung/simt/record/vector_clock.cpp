// SPDX-License-Identifier: Apache-2.0
// Join of vector clocks.
#include "rung/simt/record/vector_clock.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace rung::simt::record {

void CopySet::advance(std::uint32_t all) {
  if (all <= all_) return;
  const std::uint32_t by = all - all_;
  const std::uint32_t words = by / 64, bits = by % 64;
  const auto at = [&](std::size_t i) { return i < some_.size() ? some_[i] : std::uint64_t{0}; };
  for (std::size_t i = 0; i < some_.size(); ++i) {
    some_[i] = at(i + words) >> bits;
    if (bits != 0) some_[i] |= at(i + words + 1) << (64 - bits);
  }
  all_ = all;
}

void CopySet::settle() {
  while ((some_[0] & 1) != 0) advance(all_ + static_cast<std::uint32_t>(std::countr_one(some_[0])));
}

void CopySet::add(std::uint32_t number) {
  if (number <= all_) return;
  if (number > all_ + window) advance(number - window);
  const std::uint32_t bit = number - all_ - 1;
  some_[bit / 64] |= std::uint64_t{1} << bit % 64;
  settle();
}

void CopySet::join(const CopySet& other) {
  if (all_ == other.all_ && some_ == other.some_) return;
  CopySet theirs = other;
  const std::uint32_t all = std::max(all_, other.all_);
  advance(all);
  theirs.advance(all);
  for (std::size_t i = 0; i < some_.size(); ++i) some_[i] |= theirs.some_[i];
  settle();
}

bool CopySet::contains(const CopySet& other) const {
  if (all_ == other.all_ && some_ == other.some_) return true;
  CopySet both = *this;
  both.join(other);
  return both.all_ == all_ && both.some_ == some_;
}

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
