// SPDX-License-Identifier: Apache-2.0
// What operations of the simulator tell the recorder, from inside a kernel. Each costs a test while
// nobody records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "rung/simt/atomics.hpp"
#include "rung/simt/record/request.hpp"
#include "rung/simt/sync.hpp"

namespace rung::simt::record {

/// Sites of operations are places in the source, told from code by their top bit.
inline constexpr std::uintptr_t place_bit = std::uintptr_t{1} << 63;
inline std::uintptr_t site_of(const Place& place) {
  // A Place is a pointer to constant data, one for each call in the source.
  static_assert(sizeof(Place) == sizeof(std::uintptr_t));
  std::uintptr_t data = 0;
  std::memcpy(&data, &place, sizeof(data));
  return data | place_bit;
}

/// An access of any size and alignment by the calling thread.
RUNG_API void note_access(const void* address, std::size_t bytes, Access access,
                          std::uintptr_t site) noexcept;
/// The same place, as the site of what it started and what ends now.
inline constexpr std::uintptr_t landing_bit = std::uintptr_t{1} << 62;
inline void note(const void* address, std::size_t bytes, Access access, const Place& place) {
  if (tracer.last != nullptr) note_access(address, bytes, access, site_of(place));
}

/// In scope around note_atomic and the operation: blocks run on several OS threads, and a word's
/// operations are recorded in the order in which they happen. before_atomic() holds the word, where
/// somebody checks; no simulated thread yields from there on.
class RUNG_API AtomicOrder {
 public:
  AtomicOrder() = default;
  AtomicOrder(const AtomicOrder&) = delete;
  AtomicOrder& operator=(const AtomicOrder&) = delete;
  ~AtomicOrder() { release(); }
  void hold(std::uintptr_t address);
  /// What the OS thread holds, if anything.
  static void release();
};
/// An atomic access of std::memory_order `order` (or unstated_order), with what it synchronizes.
/// `compares`: it compares and exchanges. `in_order`: null where what follows is no operation of
/// this library, which could let go of the word.
RUNG_API void before_atomic(const void* address, std::size_t bytes, Access access, int order,
                            std::uintptr_t site, bool compares = false,
                            AtomicOrder* in_order = nullptr) noexcept;
inline void note_atomic(const void* address, std::size_t bytes, Access access, int order,
                        const Place& place, bool compares = false,
                        AtomicOrder* in_order = nullptr) {
  if (tracer.last != nullptr) {
    before_atomic(address, bytes, access, order, site_of(place), compares, in_order);
  }
}
/// The operand of an atomic operation, of 4 or 8 bytes.
RUNG_API void note_operand(std::uint64_t bits, int bytes, const Place& place) noexcept;
/// The running thread's warp multiplies an m x k matrix by a k x n one. Products of the host are
/// not counted.
RUNG_API void note_product(int m, int n, int k);
/// fence.proxy.async.
RUNG_API void proxy_fence() noexcept;
/// __threadfence(), or __threadfence_block().
RUNG_API void fence(bool device) noexcept;

}  // namespace rung::simt::record
