// SPDX-License-Identifier: Apache-2.0
// First elements of segments (heads) as a bitmap, one bit per element of a line: offsets may have
// any order, and millions of them take an eighth of a byte per element.
#pragma once

#include "rung/cpu/bit_map.hpp"
#include "rung/ops/scan/op/scan.hpp"

namespace rung::scan_cpu {

/// Returns the number of words that heads_of() needs.
inline std::size_t head_words(const Scan::Args& args) {
  return args.has_segments() ? static_cast<std::size_t>((args.length() + 63) / 64) : 0;
}

/// Marks the first elements of segments, except element 0, in `words`. Returns the bitmap.
inline cpu::BitMap heads_of(const Scan::Args& args, std::uint64_t* words) {
  if (!args.has_segments()) return cpu::BitMap();
  std::fill_n(words, head_words(args), std::uint64_t{0});
  cpu::BitMap heads(words);
  const std::int64_t n = args.length();
  visit<std::int32_t, std::int64_t>(args.offsets.dtype, [&]<class I>() {
    const auto offsets = args.offsets.view<const I, 1>();
    for (std::int64_t i = 0; i < offsets.shape[0]; ++i) {
      const std::int64_t offset = offsets(i);
      // In a reversed line, a segment begins at the position where the next segment starts in
      // memory.
      if (offset > 0 && offset < n) heads.add(args.reverse ? n - offset : offset);
    }
  });
  return heads;
}

}  // namespace rung::scan_cpu
