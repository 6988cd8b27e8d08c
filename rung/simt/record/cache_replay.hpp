// SPDX-License-Identifier: Apache-2.0
// Model of L1 and L2: replays each launch's requests of global memory. Internal to simt/.
//
// Blocks are assigned to SMs round-robin, as many per SM as fit; an SM that retires a block gets
// the next block. SMs are served round-robin, one request each, and so are the warps of an SM in
// order of block and warp; a warp waits at a barrier for the other warps of its block. L1 and L2
// start cold, as Nsight Compute measures them. L1 caches loads; stores write through to L2 and
// update a line that is present. L2 caches loads and stores and writes a line back on eviction; a
// store never misses in L2, which does not fetch on write. Atomic operations are performed in L2.
#pragma once

#include <cstdint>
#include <vector>

#include "rung/simt/record.hpp"
#include "rung/simt/record/cache_trace.hpp"

namespace rung::simt::record {

struct CacheShape {
  std::uint64_t resident = 1;  // blocks per SM
  std::size_t l1_bytes = 0;    // L1 bytes that remain beside shared memory
};
/// Returns the cache sizes for a launch: shared memory gets the smallest carveout that holds the
/// maximum number of resident blocks.
CacheShape cache_shape(const Chip& chip, std::uint64_t block_threads, std::uint64_t shared_bytes);

struct Replayed {
  std::vector<Counters> sites;  // by site number; only the cache counters are set
  std::uint64_t dirty_bytes = 0;
};
/// Replays the blocks, given in any order, through the caches of `chip`.
Replayed replay(std::vector<BlockTrace>& blocks, std::size_t sites, const Chip& chip,
                const CacheShape& shape);

}  // namespace rung::simt::record
