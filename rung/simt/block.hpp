// SPDX-License-Identifier: Apache-2.0
// The simulator's state of a thread, a warp, a block and a cluster. Internal to simt/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "rung/simt/fiber.hpp"
#include "rung/simt/limits.hpp"
#include "rung/simt/sync.hpp"
#include "rung/simt/types.hpp"
#include "rung/simt/warpgroup.hpp"

namespace rung::simt::record {
struct BlockRecord;
}

namespace rung::simt {

using dialect::dim3;
using dialect::uint3;

enum class Wait : std::uint8_t {
  none,
  barrier,
  warp,
  active_mask,
  grid,
  cluster,
  mbarrier,
  lanes,  // the recorder's list is full: waits until the warp's other lanes have caught up
  exited
};

/// A cp.async that was issued and is not yet visible.
struct AsyncCopy {
  std::byte* to;
  const std::byte* from;
  int bytes;
  int valid;  // the remaining bytes are zero-filled
  std::uint32_t group;
  bool done;  // performed, but not visible before its thread has waited
  Place place;
};

struct Block;
struct Cluster;
struct Warp;

/// State of a simulated thread. The fields used by every switch come first and fill one cache line:
/// with several hundred threads in rotation, L1 holds little more than one line of each.
struct alignas(64) Thread {
  Fiber* fiber = nullptr;  // null before it starts and after it ends
  Block* block = nullptr;
  Warp* warp = nullptr;
  uint3 index{};
  std::uint8_t lane = 0;
  std::uint8_t barrier = 0;  // number of the barrier in Wait::barrier
  Wait wait = Wait::none;
  bool at_cluster : 1 = false;  // arrived at the cluster barrier, has not waited yet
  // Passed a block barrier since its last access to volatile shared memory.
  bool met_block : 1 = false;
  const char* operation = "";  // operation that it waits in
  Place place;                 // call site of that operation
  std::uint32_t mask = 0;      // mask of Wait::warp
  std::uint32_t answer = 0;    // result of a barrier's reduction or of an active mask

  Resolve resolve = nullptr;                // for Wait::warp
  const std::uint64_t* mbarrier = nullptr;  // for Wait::mbarrier
  std::uint32_t parity = 0;                 // for Wait::mbarrier
  std::uint64_t cluster_phase = 0;          // phase of the cluster barrier at which it has arrived
  // Consecutive ones of shared memory; -1: the last access was a write.
  int volatile_reads = 0;
  const void* polled[2] = {};           // addresses of its last ordered loads
  std::uint64_t polled_values[2] = {};  // values that those loads returned

  std::vector<AsyncCopy> copies;  // in order of issue
  std::uint32_t copy_group = 0;   // the group being filled
  std::uint32_t bulk_group = 0;   // the current group of bulk stores
  int bulk_stores = 0;            // bulk stores not yet written
};

/// Lanes of one mask that called a warp operation at another call site.
struct Parting {
  Place place;
  std::uint32_t lanes = 0;
};

struct Warp {
  std::uint32_t exited = 0;           // lanes that have exited or were never launched
  std::uint32_t waiting = 0;          // lanes in a collective
  std::uint32_t undefined_reads = 0;  // shuffles that read absent lanes
  int registers = 0;                  // per lane, after setmaxnreg; 0: unchanged
  Thread* lanes[warp_lanes] = {};
  void* requests[warp_lanes] = {};
  std::vector<Parting> partings;  // while a session checks
};

/// One of the sixteen barriers of a block, or of its tiles that are larger than a warp.
struct Barrier {
  int expected = 0;  // threads of a bar.sync with a count; 0: every thread that has not exited
  int arrived = 0;
  int voted = 0;  // arrivals with a true predicate
  BlockReduction reduction = BlockReduction::none;
  bool places_differ = false;  // some threads arrived from another call site than the first
  Place place;                 // call site of the first arrival
};

struct Block {
  uint3 index{};
  Cluster* cluster = nullptr;
  int rank = 0;  // within the cluster
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  Barrier barriers[named_barriers + tile_barriers];
  // Per thread: the value it offers to the other threads of its tile.
  std::vector<const void*> offered;
  int live = 0;
  std::uint64_t random = 0;  // state of the generator behind ThreadOrder::random
  std::byte* shared = nullptr;
  std::size_t shared_capacity = 0;
  std::vector<Thread*> mbarrier_waiters;  // waiting for mbarriers in its shared memory
  // Bulk loads into its shared memory that have not landed.
  int bulk_loads = 0;
  std::vector<std::unique_ptr<Warpgroup>> warpgroups;  // those that have used tensor cores
  std::unique_ptr<record::BlockRecord> record;         // while a session records

  Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block();
};

/// Blocks that are co-resident; a single block if the launch has no clusters.
struct Cluster {
  std::vector<std::unique_ptr<Block>> blocks;
  std::uint64_t position = 0;  // in the launch's cluster sequence
  int live = 0;                // threads that have not exited
  int arrived = 0;             // threads at the cluster's barrier
  std::uint64_t phase = 0;     // completed phases of that barrier
};

}  // namespace rung::simt
