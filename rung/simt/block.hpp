// SPDX-License-Identifier: Apache-2.0
// What the simulator knows of a thread, a warp, a block and a cluster of blocks. Internal to simt/.
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
  lanes,  // the recorder's list is full: until the warp's other lanes have come as far
  exited
};

/// A cp.async that was issued and has not become visible.
struct AsyncCopy {
  std::byte* to;
  const std::byte* from;
  int bytes;
  int valid;  // the rest is filled with zeros
  std::uint32_t group;
  bool done;  // its bytes are there, which nobody may know before its thread has waited
  Place place;
};

struct Block;
struct Cluster;
struct Warp;

/// What every switch touches comes first and fills a cache line: with a few hundred threads in turn
/// the first level of cache holds little more than that of each.
struct alignas(64) Thread {
  Fiber* fiber = nullptr;  // null before it starts and after it ends
  Block* block = nullptr;
  Warp* warp = nullptr;
  uint3 index{};
  std::uint8_t lane = 0;
  std::uint8_t barrier = 0;  // which, of Wait::barrier
  Wait wait = Wait::none;
  bool at_cluster : 1 = false;  // has arrived at the cluster's barrier, not yet waited
  bool met_block : 1 = false;   // at a barrier, since it accessed volatile shared memory last
  const char* operation = "";   // what it waits in
  Place place;                  // and where
  std::uint32_t mask = 0;       // of Wait::warp
  std::uint32_t answer = 0;     // of a barrier's reduction or an active mask

  Resolve resolve = nullptr;                // of Wait::warp
  const std::uint64_t* mbarrier = nullptr;  // of Wait::mbarrier
  std::uint32_t parity = 0;                 // likewise
  std::uint64_t cluster_phase = 0;          // in which it has arrived at the cluster's barrier
  int volatile_reads = 0;                   // of shared memory, in a row; -1: it wrote last
  const void* polled[2] = {};               // where its last ordered loads looked
  std::uint64_t polled_values[2] = {};      // and what they saw

  std::vector<AsyncCopy> copies;  // in order of issue
  std::uint32_t copy_group = 0;   // the group being filled
  std::uint32_t bulk_group = 0;   // likewise, of bulk stores
  int bulk_stores = 0;            // bulk stores that have not written yet
};

/// Lanes that have met others, of their mask, in calls elsewhere in the source.
struct Parting {
  Place place;
  std::uint32_t lanes = 0;
};

struct Warp {
  std::uint32_t exited = 0;   // lanes that ended or never were
  std::uint32_t waiting = 0;  // lanes in a collective
  std::uint32_t undefined_reads = 0;  // shuffles that read absent lanes
  int registers = 0;          // of a lane, once it has changed them; 0: what it started with
  Thread* lanes[warp_lanes] = {};
  void* requests[warp_lanes] = {};
  std::vector<Parting> partings;  // while a session checks
};

/// One of the sixteen barriers of a block, or of its tiles that are larger than a warp.
struct Barrier {
  int expected = 0;  // threads of a bar.sync with a count; 0: every thread that has not exited
  int arrived = 0;
  int voted = 0;  // of those, with a true predicate
  BlockReduction reduction = BlockReduction::none;
  bool places_differ = false;  // some threads have come from another call than the first
  Place place;                 // of the first
};

struct Block {
  uint3 index{};
  Cluster* cluster = nullptr;
  int rank = 0;  // within the cluster
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  Barrier barriers[named_barriers + tile_barriers];
  std::vector<const void*> offered;  // by each thread to the others of its tile
  int live = 0;
  std::uint64_t random = 0;  // state of the generator behind ThreadOrder::random
  std::byte* shared = nullptr;
  std::size_t shared_capacity = 0;
  std::vector<Thread*> mbarrier_waiters;               // of mbarriers in its shared memory
  int bulk_loads = 0;                                  // that have not landed in it
  std::vector<std::unique_ptr<Warpgroup>> warpgroups;  // those that have used tensor cores
  std::unique_ptr<record::BlockRecord> record;         // while a session records

  Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block();
};

/// Blocks that are resident together; one block where a launch has no clusters.
struct Cluster {
  std::vector<std::unique_ptr<Block>> blocks;
  std::uint64_t position = 0;  // in the launch's sequence
  int live = 0;                // threads that have not exited
  int arrived = 0;             // at the cluster's barrier
  std::uint64_t phase = 0;     // how often it has completed
};

}  // namespace rung::simt
