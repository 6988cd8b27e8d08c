// SPDX-License-Identifier: Apache-2.0
// A model of L1 and L2: what each launch asked of global memory, replayed. Internal to simt/.
//
// Blocks go to SMs in turn, as many to each as fit; whichever SM ends one gets the next. SMs take
// turns, a request each, and so do the warps of an SM, in the order of blocks and warps; a warp
// waits for its block's others at a barrier. Both caches are empty at first, which is how Nsight
// Compute measures. L1 keeps what is loaded: stores go through to L2, and update a line that is
// there. L2 keeps both, and writes a line back on eviction; a store never misses there, since
// L2 fetches nothing for it. Atomic operations happen in L2.
#pragma once

#include <cstdint>
#include <vector>

#include "rung/simt/record.hpp"
#include "rung/simt/record/cache_trace.hpp"

namespace rung::simt::record {

struct CacheShape {
  std::uint64_t resident = 1;  // blocks per SM
  std::size_t l1_bytes = 0;    // what shared memory leaves of it
};
/// Shared memory takes the least of what the driver may give it that holds as many blocks as fit.
CacheShape cache_shape(const Chip& chip, std::uint64_t block_threads, std::uint64_t shared_bytes);

struct Replayed {
  std::vector<Counters> sites;  // by number: the caches' counters alone
  std::uint64_t dirty_bytes = 0;
};
/// `blocks` in any order; they are sorted.
Replayed replay(std::vector<BlockTrace>& blocks, std::size_t sites, const Chip& chip,
                const CacheShape& shape);

}  // namespace rung::simt::record
