// SPDX-License-Identifier: Apache-2.0
// Recording interface for the simulator's operations inside kernels. Without a session each call
// costs one branch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "rung/simt/atomics.hpp"
#include "rung/simt/record/request.hpp"
#include "rung/simt/sync.hpp"

namespace rung::simt::record {

/// Marks a site that is a source location (Place) instead of a code address.
inline constexpr std::uintptr_t place_bit = std::uintptr_t{1} << 63;
inline std::uintptr_t site_of(const Place& place) {
  // A Place is a pointer to constant data, unique per call in the source.
  static_assert(sizeof(Place) == sizeof(std::uintptr_t));
  std::uintptr_t data = 0;
  std::memcpy(&data, &place, sizeof(data));
  return data | place_bit;
}

/// Records an access of any size and alignment by the calling thread.
RUNG_API void note_access(const void* address, std::size_t bytes, Access access,
                          std::uintptr_t site) noexcept;
/// Marks the site of an operation's completion, to distinguish it from the operation's start.
inline constexpr std::uintptr_t landing_bit = std::uintptr_t{1} << 62;
/// Marks the site of a copy's last read of its source.
inline constexpr std::uintptr_t source_bit = std::uintptr_t{1} << 61;
inline void note(const void* address, std::size_t bytes, Access access, const Place& place) {
  if (tracer.last != nullptr) note_access(address, bytes, access, site_of(place));
}

/// Lock on a word during note_atomic() and the operation: blocks run on several OS threads, and
/// operations must be recorded in the order in which they are performed. before_atomic() locks the
/// word if checks are enabled. No simulated thread may yield before the end of the scope.
class RUNG_API AtomicOrder {
 public:
  AtomicOrder() = default;
  AtomicOrder(const AtomicOrder&) = delete;
  AtomicOrder& operator=(const AtomicOrder&) = delete;
  ~AtomicOrder() { release(); }
  void hold(std::uintptr_t address);
  /// Releases the lock that the calling OS thread holds, if any.
  static void release();
};
/// Records an atomic access with std::memory_order `order` (or unstated_order) and its
/// synchronization. `compares`: it is a compare-and-exchange. `in_order`: null if code outside this
/// library performs the operation, so that nothing would unlock the word.
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
/// Records the operand (4 or 8 bytes) of an atomic operation.
RUNG_API void note_operand(std::uint64_t bits, int bytes, const Place& place) noexcept;
/// Counts a product of an m x k and a k x n matrix by the running thread's warp. No effect in host
/// code.
RUNG_API void note_product(int m, int n, int k);
/// Records fence.proxy.async.
RUNG_API void proxy_fence() noexcept;
/// Records __threadfence() or, if not `device`, __threadfence_block().
RUNG_API void fence(bool device) noexcept;

}  // namespace rung::simt::record
