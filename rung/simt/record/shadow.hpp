// SPDX-License-Identifier: Apache-2.0
// What the recorder remembers of memory: who wrote and who read each word last, and which bytes
// anybody has written. Internal to simt/.
//
// A word has cells, and each of its bytes only once an access concerns a part of the word. So words
// that are always accessed whole, which is usual, cost little, and bytes of one word that belong to
// different threads are told apart.
//
// Cells are reset lazily: a chunk whose era is not the current one is as new. Workers on several OS
// threads share the cells of global memory without locks: what is lost then is a record, which may
// hide a race but cannot make one up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

namespace rung::simt::record {

/// Zeroed memory of which only the touched pages cost anything.
class LazyMemory {
 public:
  LazyMemory() = default;
  explicit LazyMemory(std::size_t bytes);
  LazyMemory(const LazyMemory&) = delete;
  LazyMemory& operator=(const LazyMemory&) = delete;
  LazyMemory(LazyMemory&& other) noexcept;
  LazyMemory& operator=(LazyMemory&& other) noexcept;
  ~LazyMemory();
  template <class T>
  [[nodiscard]] T* as() const {
    return static_cast<T*>(memory_);
  }
  explicit operator bool() const { return memory_ != nullptr; }

 private:
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

inline constexpr std::size_t word_bytes = 4;
inline constexpr std::size_t chunk_bytes = 1024;
inline constexpr std::size_t chunk_words = chunk_bytes / word_bytes;

/// One bit a byte: whether anybody has written it.
class Initialized {
 public:
  Initialized() = default;
  explicit Initialized(std::size_t bytes) : bits_((bytes + 63) / 64 * 8) {}
  explicit operator bool() const { return static_cast<bool>(bits_); }
  /// Returns whether all of `count` bytes from `offset` on have been.
  [[nodiscard]] bool all(std::size_t offset, std::size_t count) const {
    while (count != 0) {
      const std::size_t bit = offset % 64;
      const std::size_t here = count < 64 - bit ? count : 64 - bit;
      const std::uint64_t missing = ~words()[offset / 64] >> bit;
      if ((missing & (~std::uint64_t{0} >> (64 - here))) != 0) return false;
      offset += here;
      count -= here;
    }
    return true;
  }
  /// Returns whether none of them has been.
  [[nodiscard]] bool none(std::size_t offset, std::size_t count) const;
  void set(std::size_t offset, std::size_t count, bool value);

 private:
  [[nodiscard]] std::uint64_t* words() const { return bits_.as<std::uint64_t>(); }
  LazyMemory bits_;
};

/// The cells of a word's bytes.
struct ByteCells {
  std::uint64_t writes[word_bytes], reads[word_bytes], others[word_bytes];
};

struct Shadow {
  Shadow() = default;
  explicit Shadow(std::size_t size);
  explicit operator bool() const { return bytes != 0; }

  std::size_t bytes = 0;
  LazyMemory writes;  // std::uint64_t a word; what the bits mean: cell.hpp
  LazyMemory reads;
  LazyMemory others;   // likewise: another reader than the one in `reads`, if that is of several
  LazyMemory by_byte;  // ByteCells a word, while its reads say so
  LazyMemory values;   // std::uint32_t a word: what the last plain write left there
  LazyMemory eras;     // std::uint32_t a chunk
};

/// Empties the cells of a chunk that were left by another era.
inline void touch(std::uint64_t* writes, std::uint64_t* reads, std::uint32_t& era,
                  std::uint32_t now, std::size_t chunk) {
  if (era == now) return;
  std::memset(writes + chunk * chunk_words, 0, chunk_words * sizeof(std::uint64_t));
  std::memset(reads + chunk * chunk_words, 0, chunk_words * sizeof(std::uint64_t));
  era = now;
}

}  // namespace rung::simt::record
