// SPDX-License-Identifier: Apache-2.0
// Collects the bytes that a launch accesses.
#include "rung/simt/record/footprint.hpp"

#include <algorithm>
#include <bit>

#include "rung/simt/record/request.hpp"

namespace rung::simt::record {
namespace {

Touch touch_of(Access access) {
  if (is_plain_write(access)) return Touch::write;
  if (is_plain_read(access) || access == Access::texture) return Touch::read;
  return Touch::atomic;
}

/// Appends [begin, end), which must not begin before the end of the last range.
void append(ByteRanges& ranges, std::uintptr_t begin, std::uintptr_t end) {
  if (!ranges.empty() && ranges.back().end == begin) {
    ranges.back().end = end;
  } else {
    ranges.push_back({begin, end});
  }
}

}  // namespace

Footprint::Page& Footprint::page_of(std::uintptr_t number) {
  if (number == last_number_) return *last_;
  std::unique_ptr<Page>& page = pages_[number];
  if (page == nullptr) page = std::make_unique<Page>();
  last_number_ = number;
  return *(last_ = page.get());
}

void Footprint::add(Touch touch, std::uintptr_t address, std::size_t bytes) {
  const std::uintptr_t end = address + bytes;
  while (address < end) {
    auto& bits = page_of(address / page_bytes).bits[static_cast<int>(touch)];
    const std::size_t first = address % 64;
    const std::size_t here = std::min<std::size_t>(64 - first, end - address);
    bits[address % page_bytes / 64] |= (~std::uint64_t{0} >> (64 - here)) << first;
    address += here;
  }
}

void Footprint::note(Request& request) {
  const Step& step = request.step;
  if (request.target.region == nullptr || step.access == Access::marker ||
      step.access == Access::basic_block) {
    return;
  }
  const Touch touch = touch_of(step.access);
  const std::size_t bytes = std::size_t{1} << step.log_size;
  if (request.progression && request.stride == 1) {
    add(touch, step.base + (std::uintptr_t{request.units[0]} << step.log_size), 32 * bytes);
    return;
  }
  if (request.progression && request.stride == 0) {
    add(touch, step.base + (std::uintptr_t{request.units[0]} << step.log_size), bytes);
    return;
  }
  request.spread();
  for_each_lane(request.lanes, [&](int lane) {
    add(touch, step.base + (std::uintptr_t{request.units[lane]} << step.log_size), bytes);
  });
}

void Footprint::add(const Footprint& other) {
  for (const auto& [number, page] : other.pages_) {
    Page& mine = page_of(number);
    for (std::size_t kind = 0; kind < std::size(mine.bits); ++kind) {
      for (std::size_t i = 0; i < mine.bits[kind].size(); ++i) {
        mine.bits[kind][i] |= page->bits[kind][i];
      }
    }
  }
}

void Footprint::clear() {
  pages_.clear();
  last_number_ = ~std::uintptr_t{0};
}

ByteRanges Footprint::ranges(Touch touch) const {
  std::vector<std::uintptr_t> numbers;
  numbers.reserve(pages_.size());
  for (const auto& [number, page] : pages_) numbers.push_back(number);
  std::sort(numbers.begin(), numbers.end());
  ByteRanges all;
  for (const std::uintptr_t number : numbers) {
    const auto& words = pages_.at(number)->bits[static_cast<int>(touch)];
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::uintptr_t base = number * page_bytes + 64 * i;
      for (std::uint64_t left = words[i]; left != 0;) {
        const int first = std::countr_zero(left);
        const int count = std::countr_one(left >> first);
        append(all, base + static_cast<unsigned>(first),
               base + static_cast<unsigned>(first + count));
        left = first + count == 64 ? 0 : left & (~std::uint64_t{0} << (first + count));
      }
    }
  }
  return all;
}

}  // namespace rung::simt::record
