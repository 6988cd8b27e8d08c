// SPDX-License-Identifier: Apache-2.0
// Sets of bytes, represented by address ranges.
#include "rung/emulate/runtime/byte_ranges.hpp"

#include <algorithm>

namespace rung::cuda {
namespace {

/// Returns the first range that ends after the address.
auto behind(const ByteRanges& ranges, std::uintptr_t address) {
  return std::partition_point(ranges.begin(), ranges.end(),
                              [&](const ByteRange& one) { return one.end <= address; });
}

}  // namespace

std::uintptr_t first_common(const ByteRanges& one, const ByteRanges& other) {
  if (one.size() > other.size()) return first_common(other, one);
  for (const ByteRange& range : one) {
    const auto found = behind(other, range.begin);
    if (found == other.end()) return 0;
    if (found->begin < range.end) return std::max(range.begin, found->begin);
  }
  return 0;
}

void remove(ByteRanges& ranges, const ByteRanges& gone) {
  if (first_common(ranges, gone) == 0) return;
  ByteRanges left;
  auto cut = gone.begin();
  for (ByteRange one : ranges) {
    while (cut != gone.end() && cut->end <= one.begin) ++cut;
    for (auto at = cut; at != gone.end() && at->begin < one.end && one.begin < one.end; ++at) {
      if (one.begin < at->begin) left.push_back({one.begin, at->begin});
      one.begin = std::max(one.begin, at->end);
    }
    if (one.begin < one.end) left.push_back(one);
  }
  ranges.swap(left);
}

void insert(ByteRanges& ranges, ByteRange more) {
  if (more.begin >= more.end) return;
  if (!ranges.empty() && ranges.back().end == more.begin) {
    ranges.back().end = more.end;
    return;
  }
  const auto first = std::partition_point(
      ranges.begin(), ranges.end(), [&](const ByteRange& one) { return one.end < more.begin; });
  auto last = first;
  for (; last != ranges.end() && last->begin <= more.end; ++last) {
    more.begin = std::min(more.begin, last->begin);
    more.end = std::max(more.end, last->end);
  }
  ranges.insert(ranges.erase(first, last), more);
}

void unite(ByteRanges& ranges, const ByteRanges& more) {
  if (ranges.empty()) {
    ranges = more;
    return;
  }
  if (more.size() < 8) {
    for (const ByteRange& one : more) insert(ranges, one);
    return;
  }
  ByteRanges all;
  std::merge(ranges.begin(), ranges.end(), more.begin(), more.end(), std::back_inserter(all),
             [](const ByteRange& a, const ByteRange& b) { return a.begin < b.begin; });
  ranges.clear();
  for (const ByteRange& one : all) {
    if (!ranges.empty() && one.begin <= ranges.back().end) {
      ranges.back().end = std::max(ranges.back().end, one.end);
    } else {
      ranges.push_back(one);
    }
  }
}

}  // namespace rung::cuda
