// SPDX-License-Identifier: Apache-2.0
// Ordered loads and stores of 1 to 16 bytes.
#include "rung/simt/ordered_memory.hpp"

#include <cstring>
#include <mutex>

#include "rung/simt/record/operations.hpp"
#include "rung/simt/scheduler.hpp"

namespace rung::simt {
namespace {

constexpr std::size_t lock_count = 64;
std::mutex locks[lock_count];

std::mutex& lock_of(const void* address) {
  return locks[reinterpret_cast<std::uintptr_t>(address) / 16 % lock_count];
}

constexpr int polls_before_yield = 32;
constinit thread_local int polls_left = polls_before_yield;

template <class Word>
void load_word(const void* from, void* to) {
  const Word word = __atomic_load_n(static_cast<const Word*>(from), __ATOMIC_ACQUIRE);
  std::memcpy(to, &word, sizeof(word));
}
template <class Word>
void store_word(void* to, const void* from) {
  Word word = 0;
  std::memcpy(&word, from, sizeof(word));
  __atomic_store_n(static_cast<Word*>(to), word, __ATOMIC_RELEASE);
}

/// Loads 1 to 16 bytes atomically. 16-byte loads, which C++ does not guarantee to be atomic, take a
/// lock selected by the address.
void load(const void* from, void* to, std::size_t bytes) {
  if (bytes == 16) {
    const std::lock_guard lock(lock_of(from));
    std::memcpy(to, from, 16);
  } else if (bytes == 8) {
    load_word<std::uint64_t>(from, to);
  } else if (bytes == 4) {
    load_word<std::uint32_t>(from, to);
  } else if (bytes == 2) {
    load_word<std::uint16_t>(from, to);
  } else {
    load_word<std::uint8_t>(from, to);
  }
}
void store(void* to, const void* from, std::size_t bytes) {
  if (bytes == 16) {
    const std::lock_guard lock(lock_of(to));
    std::memcpy(to, from, 16);
  } else if (bytes == 8) {
    store_word<std::uint64_t>(to, from);
  } else if (bytes == 4) {
    store_word<std::uint32_t>(to, from);
  } else if (bytes == 2) {
    store_word<std::uint16_t>(to, from);
  } else {
    store_word<std::uint8_t>(to, from);
  }
}

/// Returns the memory order to record, as an __ATOMIC_ constant or unstated_order. `ordered`: what
/// MemoryOrder::ordered means for this access (acquire for loads, release for stores).
int noted(MemoryOrder order, int ordered) {
  if (order == MemoryOrder::unstated) return unstated_order;
  return order == MemoryOrder::ordered ? ordered : __ATOMIC_RELAXED;
}

std::uint64_t digest(const void* value, std::size_t bytes) {
  std::uint64_t words[2] = {};
  std::memcpy(words, value, bytes);
  return words[0] + 0x9e3779b97f4a7c15u * words[1];
}

}  // namespace

/// Records the value that the calling thread has read. Returns true if the thread's previous read
/// of this address gave the same value; the thread has then yielded, and the caller should read
/// again. Also used by volatile_memory.cpp.
bool poll(const void* address, std::uint64_t seen, const char* operation, Place place);

void require_aligned(const void* address, std::size_t bytes, const char* operation, Place place) {
  if (reinterpret_cast<std::uintptr_t>(address) % bytes == 0) return;
  running_worker(operation).fail(
      std::string("misaligned address: ") + operation + " of " + std::to_string(bytes) + " bytes",
      place);
}

bool poll(const void* address, std::uint64_t seen, const char* operation, Place place) {
  Worker& here = running_worker(operation);
  Thread& self = here.current();
  self.operation = operation;
  self.place = place;
  const auto known = [&](int i) {
    return self.polled[i] == address && self.polled_values[i] == seen;
  };
  if (!known(0) && !known(1)) {
    // Replaces the entry of this address, else the older of the two entries.
    if (self.polled[0] != address) {
      self.polled[1] = self.polled[0];
      self.polled_values[1] = self.polled_values[0];
    }
    self.polled[0] = address;
    self.polled_values[0] = seen;
    // Threads that poll many addresses in turn also yield from time to time.
    if (--polls_left <= 0) {
      polls_left = polls_before_yield;
      here.yield(YieldReason::many_loads);
    }
    return false;
  }
  here.yield(YieldReason::in_vain);
  return true;
}

void load_in_order(const void* from, void* to, std::size_t bytes, MemoryOrder order,
                   const char* operation, Place place, AtomicScope scope) {
  require_aligned(from, bytes, operation, place);
  load(from, to, bytes);
  if (poll(from, digest(to, bytes), operation, place)) load(from, to, bytes);
  // Recorded after the load, because the release of the loaded value precedes the load.
  const auto access =
      scope == AtomicScope::block ? record::Access::block_read : record::Access::volatile_read;
  record::note_atomic(from, bytes, access, noted(order, __ATOMIC_ACQUIRE), place);
}

void store_in_order(void* to, const void* from, std::size_t bytes, MemoryOrder order,
                    const char* operation, Place place, AtomicScope scope) {
  require_aligned(to, bytes, operation, place);
  const auto access =
      scope == AtomicScope::block ? record::Access::block_store : record::Access::volatile_write;
  record::note_atomic(to, bytes, access, noted(order, __ATOMIC_RELEASE), place);
  store(to, from, bytes);
  memory_changed = true;
}

}  // namespace rung::simt
