// SPDX-License-Identifier: Apache-2.0
// State of a simulated thread, warp, block and cluster. Internal to simt/.
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

/// A cp.async that has been issued and is not yet visible.
struct AsyncCopy {
  std::byte* to;
  const std::byte* from;
  int bytes;
  int valid;  // the remaining bytes are zero-filled
  std::uint32_t group;
  bool done;  // performed, but not visible until its thread has waited
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
  std::uint8_t barrier = 0;  // barrier number, for Wait::barrier
  Wait wait = Wait::none;
  bool at_cluster : 1 = false;  // arrived at the cluster barrier, has not waited yet
  // Passed a block barrier since its last access to volatile shared memory.
  bool met_block : 1 = false;
  const char* operation = "";  // operation in which the thread waits
  Place place;                 // call site of that operation
  std::uint32_t mask = 0;      // lane mask, for Wait::warp
  std::uint32_t answer = 0;    // result of a barrier's reduction or of an active mask

  Resolve resolve = nullptr;                // for Wait::warp
  const std::uint64_t* mbarrier = nullptr;  // for Wait::mbarrier
  std::uint32_t parity = 0;                 // for Wait::mbarrier
  std::uint64_t cluster_phase = 0;          // phase of the cluster barrier at which it has arrived
  // Consecutive volatile reads of shared memory; -1: the last volatile access was a write.
  int volatile_reads = 0;
  const void* polled[2] = {};           // addresses of the last ordered loads
  std::uint64_t polled_values[2] = {};  // values that those loads returned

  std::vector<AsyncCopy> copies;  // in order of issue
  std::uint32_t copy_group = 0;   // group being filled
  std::uint32_t bulk_group = 0;   // current group of bulk stores
  int bulk_stores = 0;            // bulk stores not yet written
};

/// Lanes of one mask that called a warp operation from call site `place` while other lanes of the
/// mask called it from another site.
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

/// One of the sixteen named barriers of a block, or a barrier of one of its tiles of 64 or more
/// threads.
struct Barrier {
  int expected = 0;  // threads of a bar.sync with a count; 0: every thread that has not exited
  int arrived = 0;
  int voted = 0;  // arrivals with a true predicate
  BlockReduction reduction = BlockReduction::none;
  bool places_differ = false;  // some threads arrived from another call site than the first thread
  Place place;                 // call site of the first arrival
};

struct Block {
  uint3 index{};
  Cluster* cluster = nullptr;
  int rank = 0;  // within the cluster
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  Barrier barriers[named_barriers + tile_barriers];
  // Per thread: address of the value that it offers to the other threads of its tile.
  std::vector<const void*> offered;
  int live = 0;
  std::uint64_t random = 0;  // state of the random generator for ThreadOrder::random
  std::byte* shared = nullptr;
  std::size_t shared_capacity = 0;
  std::vector<Thread*> mbarrier_waiters;  // waiting for mbarriers in its shared memory
  // Number of bulk loads into its shared memory that have not landed.
  int bulk_loads = 0;
  std::vector<std::unique_ptr<Warpgroup>> warpgroups;  // warpgroups that have used tensor cores
  std::unique_ptr<record::BlockRecord> record;         // while a session records

  Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block();
};

/// Co-resident blocks; a single block if the launch has no clusters.
struct Cluster {
  std::vector<std::unique_ptr<Block>> blocks;
  std::uint64_t position = 0;  // in the launch's cluster sequence
  int live = 0;                // threads that have not exited
  int arrived = 0;             // threads at the cluster's barrier
  std::uint64_t phase = 0;     // completed phases of the cluster's barrier
};

}  // namespace rung::simt
