// SPDX-License-Identifier: Apache-2.0
// The beginnings of segments as a bitmap, a bit an element of a line: whatever order the offsets
// come in, a rung finds the next one in a few instructions, and a list of millions costs an eighth
// of a byte an element.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "rung/ops/scan/op/scan.hpp"

namespace rung::scan_cpu {

class Heads {
 public:
  /// No segments.
  Heads() = default;
  /// Marks the segments of `args` in `words`, of which size(args) must be there.
  Heads(const Scan::Args& args, std::uint64_t* words) : words_(words) {
    if (!args.has_segments()) {
      words_ = nullptr;
      return;
    }
    std::fill_n(words, size(args), std::uint64_t{0});
    const std::int64_t n = args.length();
    visit<std::int32_t, std::int64_t>(args.offsets.dtype, [&]<class I>() {
      const auto offsets = args.offsets.view<const I, 1>();
      for (std::int64_t i = 0; i < offsets.shape[0]; ++i) {
        const std::int64_t offset = offsets(i);
        if (offset <= 0 || offset >= n) continue;
        // From the other end, a segment begins where the next one's elements are all behind.
        const std::int64_t at = args.reverse ? n - offset : offset;
        words[at / 64] |= std::uint64_t{1} << (at % 64);
      }
    });
  }
  [[nodiscard]] static std::size_t size(const Scan::Args& args) {
    return args.has_segments() ? static_cast<std::size_t>((args.length() + 63) / 64) : 0;
  }

  [[nodiscard]] bool any() const { return words_ != nullptr; }
  [[nodiscard]] bool at(std::int64_t i) const {
    return words_ != nullptr && (words_[i / 64] >> (i % 64) & 1) != 0;
  }
  /// The first beginning in [from, end), or `end`.
  [[nodiscard]] std::int64_t next(std::int64_t from, std::int64_t end) const {
    if (words_ == nullptr || from >= end) return end;
    std::int64_t word = from / 64;
    std::uint64_t bits = words_[word] & (~std::uint64_t{0} << (from % 64));
    while (bits == 0) {
      if (++word * 64 >= end) return end;
      bits = words_[word];
    }
    return std::min(end, word * 64 + std::countr_zero(bits));
  }
  /// The last beginning in [from, end), or -1.
  [[nodiscard]] std::int64_t last(std::int64_t from, std::int64_t end) const {
    if (words_ == nullptr || from >= end) return -1;
    std::int64_t word = (end - 1) / 64;
    std::uint64_t bits = words_[word] & (~std::uint64_t{0} >> (63 - (end - 1) % 64));
    while (bits == 0) {
      if (word * 64 <= from) return -1;
      bits = words_[--word];
    }
    const std::int64_t found = word * 64 + 63 - std::countl_zero(bits);
    return found >= from ? found : -1;
  }

 private:
  const std::uint64_t* words_ = nullptr;
};

}  // namespace rung::scan_cpu
