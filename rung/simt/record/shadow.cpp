// SPDX-License-Identifier: Apache-2.0
// Shadow memory, and the bitmap of initialized bytes.
#include "rung/simt/record/shadow.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <utility>

namespace rung::simt::record {

LazyMemory::LazyMemory(std::size_t bytes) : bytes_(std::max<std::size_t>(bytes, 1)) {
  memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory_ == MAP_FAILED) {
    memory_ = nullptr;
    throw std::bad_alloc();
  }
}

LazyMemory::LazyMemory(LazyMemory&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)), bytes_(other.bytes_) {}

LazyMemory& LazyMemory::operator=(LazyMemory&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

LazyMemory::~LazyMemory() {
  if (memory_ != nullptr) munmap(memory_, bytes_);
}

bool Initialized::none(std::size_t offset, std::size_t count) const {
  while (count != 0) {
    const std::size_t bit = offset % 64;
    const std::size_t here = std::min<std::size_t>(64 - bit, count);
    const std::uint64_t written = words()[offset / 64] >> bit;
    if ((written & (~std::uint64_t{0} >> (64 - here))) != 0) return false;
    offset += here;
    count -= here;
  }
  return true;
}

void Initialized::set(std::size_t offset, std::size_t count, bool value) {
  const std::size_t end = offset + count;
  while (offset < end) {
    const std::size_t bit = offset % 64;
    const std::size_t here = std::min<std::size_t>(64 - bit, end - offset);
    const std::uint64_t mask = (here == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << here) - 1)
                               << bit;
    std::uint64_t& word = words()[offset / 64];
    // Atomic, since a block on another OS thread may write adjacent bytes.
    if (value) {
      if ((word & mask) != mask) __atomic_fetch_or(&word, mask, __ATOMIC_RELAXED);
    } else {
      __atomic_fetch_and(&word, ~mask, __ATOMIC_RELAXED);
    }
    offset += here;
  }
}

Shadow::Shadow(std::size_t size)
    : bytes(size),
      writes((size / word_bytes + 2) * 8),
      reads((size / word_bytes + 2) * 8),
      others((size / word_bytes + 2) * 8),
      by_byte((size / word_bytes + 2) * sizeof(ByteCells)),
      values((size / word_bytes + 2) * 4),
      eras((size / chunk_bytes + 2) * 4) {}

}  // namespace rung::simt::record
