// SPDX-License-Identifier: Apache-2.0
// Ordered loads and stores of the simulated GPU, by which threads of different blocks wait for each
// other. A load that sees what its thread saw there before is a wait: it lets others run, starts
// blocks that have not started, and tells a deadlock when nothing can change any more.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

#include "rung/core/export.hpp"
#include "rung/simt/atomics.hpp"
#include "rung/simt/sync.hpp"

namespace rung::simt {

/// Notes what the calling thread saw. Whether it had seen just that there before; if so, other
/// threads have run meanwhile, and it should look again.
RUNG_API bool poll(const void* address, std::uint64_t seen, const char* operation, Place place);
/// Fails the launch unless the address is aligned to `bytes`.
RUNG_API void require_aligned(const void* address, std::size_t bytes, const char* operation,
                              Place place);

/// 16 bytes in one piece, which no standard atomic promises: under locks chosen by the address.
RUNG_API void load_16_bytes(const void* from, void* to);
RUNG_API void store_16_bytes(void* to, const void* from);

template <class T>
T atomic_load(const T* from) {
  if constexpr (sizeof(T) == 16) {
    T value;
    load_16_bytes(from, &value);
    return value;
  } else {
    return std::atomic_ref<T>(*const_cast<T*>(from)).load(std::memory_order_acquire);
  }
}

template <class T>
std::uint64_t digest(const T& value) {
  std::uint64_t words[(sizeof(T) + 7) / 8] = {};
  std::memcpy(words, &value, sizeof(T));
  return sizeof(T) == 16 ? words[0] + 0x9e3779b97f4a7c15u * words[sizeof(words) / 8 - 1] : words[0];
}

template <class T>
T ordered_load(const T* from, const char* operation, Place place) {
  require_aligned(from, sizeof(T), operation, place);
  const T value = atomic_load(from);
  return poll(from, digest(value), operation, place) ? atomic_load(from) : value;
}

template <class T>
void ordered_store(T* to, const T& value, const char* operation, Place place) {
  require_aligned(to, sizeof(T), operation, place);
  if constexpr (sizeof(T) == 16) {
    store_16_bytes(to, &value);
  } else {
    std::atomic_ref<T>(*to).store(value, std::memory_order_release);
  }
  memory_changed = true;
}

}  // namespace rung::simt
