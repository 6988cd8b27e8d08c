// SPDX-License-Identifier: Apache-2.0
// Shadow memory: the last writer and the readers of each word, and the initialized bytes. Internal
// to simt/.
//
// Cells describe words; the bytes of a word get their own cells only when an access covers part of
// the word. Words that are always accessed whole, the common case, are thus cheap, and accesses of
// different threads to bytes of one word are distinguished.
//
// Cells are reset lazily: a chunk from an earlier era counts as empty. OS threads share the cells
// of global memory without locks: a lost update may hide a race but cannot cause a false report.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

namespace rung::simt::record {

/// Zero-initialized memory; untouched pages cost nothing.
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

/// Bitmap of initialized bytes.
class Initialized {
 public:
  Initialized() = default;
  explicit Initialized(std::size_t bytes) : bits_((bytes + 63) / 64 * 8) {}
  explicit operator bool() const { return static_cast<bool>(bits_); }
  /// Returns true if all `count` bytes from `offset` are initialized.
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
  /// Returns true if none of the bytes is initialized.
  [[nodiscard]] bool none(std::size_t offset, std::size_t count) const;
  void set(std::size_t offset, std::size_t count, bool value);

 private:
  [[nodiscard]] std::uint64_t* words() const { return bits_.as<std::uint64_t>(); }
  LazyMemory bits_;
};

/// Cells for the individual bytes of a word.
struct ByteCells {
  std::uint64_t writes[word_bytes], reads[word_bytes], others[word_bytes];
};

struct Shadow {
  Shadow() = default;
  explicit Shadow(std::size_t size);
  explicit operator bool() const { return bytes != 0; }

  std::size_t bytes = 0;
  LazyMemory writes;  // std::uint64_t per word; encoding in cell.hpp
  LazyMemory reads;
  LazyMemory others;   // second reader, if `reads` represents several
  LazyMemory by_byte;  // ByteCells per word, valid if its reads are Cell::in_bytes
  LazyMemory values;   // std::uint32_t per word: value of the last plain write
  LazyMemory eras;     // std::uint32_t per chunk
};

/// Clears the cells of a chunk unless they belong to the current era, `now`.
inline void touch(std::uint64_t* writes, std::uint64_t* reads, std::uint32_t& era,
                  std::uint32_t now, std::size_t chunk) {
  if (era == now) return;
  std::memset(writes + chunk * chunk_words, 0, chunk_words * sizeof(std::uint64_t));
  std::memset(reads + chunk * chunk_words, 0, chunk_words * sizeof(std::uint64_t));
  era = now;
}

}  // namespace rung::simt::record
