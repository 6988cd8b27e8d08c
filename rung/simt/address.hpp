// SPDX-License-Identifier: Apache-2.0
// Validates the addresses passed to copies, and translates addresses between the blocks of a
// cluster. Internal to simt/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "rung/simt/ordered_memory.hpp"
#include "rung/simt/scheduler.hpp"

namespace rung::simt {

/// Fails the launch unless the bytes are in the calling block's shared memory.
void require_shared(const char* operation, const void* address, std::size_t bytes, Place place);
/// Fails the launch if the range begins in a device allocation and extends past its end.
void require_global(const char* operation, const void* address, std::size_t bytes, Place place);
/// Returns the block of this rank in the caller's cluster; fails the launch if the rank is out of
/// range.
Block& block_of_rank(const char* operation, int rank, Place place);

/// Returns the address in `block`'s shared memory at the same offset as `address` has in the
/// caller's.
inline void* in(const Block& block, const void* address) {
  const Block& own = *running_worker("cluster").current().block;
  return block.shared + (static_cast<const std::byte*>(address) - own.shared);
}

/// Calls f(block) for each block of the caller's cluster whose bit is set in the mask.
template <class F>
void for_each_rank(const char* operation, std::uint32_t ranks, Place place, F f) {
  for (; ranks != 0; ranks &= ranks - 1) {
    f(block_of_rank(operation, __builtin_ctz(ranks), place));
  }
}

}  // namespace rung::simt
