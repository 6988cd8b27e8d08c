// SPDX-License-Identifier: Apache-2.0
// Ordered loads and stores of the simulated GPU, by which threads of different blocks wait for each
// other. A load that returns the same value as the thread's previous load of that address is a
// poll: it yields, starts blocks that are not resident, and reports a deadlock when no further
// change is possible.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rung/core/export.hpp"
#include "rung/simt/atomics.hpp"
#include "rung/simt/sync.hpp"

namespace rung::simt {

/// Fails the launch unless the address is aligned to `bytes`.
RUNG_API void require_aligned(const void* address, std::size_t bytes, const char* operation,
                              Place place);

/// Memory order of an access. ordered: acquire or release; unstated: volatile (see unstated_order).
enum class MemoryOrder : std::uint8_t { relaxed, ordered, unstated };

/// Loads 1, 2, 4, 8 or 16 bytes in one access. Not inline: kernels are compiled with a hook at each
/// access.
RUNG_API void load_in_order(const void* from, void* to, std::size_t bytes, MemoryOrder order,
                            const char* operation, Place place,
                            AtomicScope scope = AtomicScope::device);
RUNG_API void store_in_order(void* to, const void* from, std::size_t bytes, MemoryOrder order,
                             const char* operation, Place place,
                             AtomicScope scope = AtomicScope::device);

template <class T>
T ordered_load(const T* from, MemoryOrder order, const char* operation, Place place,
               AtomicScope scope = AtomicScope::device) {
  T value;
  load_in_order(from, &value, sizeof(T), order, operation, place, scope);
  return value;
}

template <class T>
void ordered_store(T* to, const T& value, MemoryOrder order, const char* operation, Place place,
                   AtomicScope scope = AtomicScope::device) {
  store_in_order(to, &value, sizeof(T), order, operation, place, scope);
}

}  // namespace rung::simt
