// SPDX-License-Identifier: Apache-2.0
//
// BitMap: set of integers from 0, one bit each, in words that the caller owns. A search takes a few
// instructions per 64 integers.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace rung::cpu {

class BitMap {
 public:
  /// Refers to an array of (positions + 63) / 64 words; null: the empty set.
  explicit BitMap(std::uint64_t* words = nullptr) : words_(words) {}

  [[nodiscard]] bool is_empty() const { return words_ == nullptr; }
  void add(std::int64_t i) { words_[i / 64] |= std::uint64_t{1} << (i % 64); }
  [[nodiscard]] bool has(std::int64_t i) const {
    return words_ != nullptr && (words_[i / 64] >> (i % 64) & 1) != 0;
  }
  /// Returns the first member in [from, end), or `end`.
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
  /// Returns the last member in [from, end), or -1.
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
  std::uint64_t* words_;
};

}  // namespace rung::cpu
