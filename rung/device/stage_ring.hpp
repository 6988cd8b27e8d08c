// SPDX-License-Identifier: Apache-2.0
// StageRing: the mbarriers of a software pipeline between a producer thread, which issues copies,
// and consumer warps, which use the copied data. Compute capability 9.0.
//
//   struct Layout { alignas(1024) unsigned char tile[4][16384]; StageRing<4> ring; };
//   if (threadIdx.x == 0) ring.init(consumer_warps);       // then a barrier of the block
//
//   RingPlace<4> at;                                        // one per thread
//   for (...) {                                             // the producer
//     ring.await_empty(at);
//     ring.expect(at, bytes);                               // bytes of all copies into this stage
//     ptx::tensor_load(tile[at.stage], map, {...}, ring.full[at.stage]);
//     at.advance();
//   }
//   for (...) {                                             // a consumer
//     ring.await_full(at);
//     use(tile[at.stage]);
//     if (lane == 0) ring.release(at.stage);                // its warp has read the stage
//     at.advance();
//   }
//
// Each consumer warp arrives, not each warpgroup: a wgmma that one warp has waited for is complete
// for that warp only, not for the other three of its warpgroup.
#pragma once

#include "rung/device/ptx/mbarrier.hpp"

namespace rung::inline RUNG_TARGET {

/// Position of a thread in a ring of stages.
template <int Stages>
struct RingPlace {
  int stage = 0;
  unsigned parity = 0;

  __device__ __forceinline__ void advance() {
    if (++stage == Stages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

/// Full and empty barriers of each stage; a member of a shared<Layout>() struct.
template <int Stages>
struct StageRing {
  ptx::MemoryBarrier full[Stages];   // one arrival, the producer's, and the bytes it expects
  ptx::MemoryBarrier empty[Stages];  // one arrival per consumer warp

  /// Initializes the ring. One thread calls it; a barrier of the block (or cluster) follows.
  __device__ __forceinline__ void init(int consumers) {
    for (int stage = 0; stage < Stages; ++stage) {
      ptx::mbarrier_init(full[stage], 1);
      ptx::mbarrier_init(empty[stage], consumers);
    }
    ptx::mbarrier_fence_init();
  }
  /// Waits until the stage is empty. The inverted parity makes the first wait on each stage return
  /// at once.
  __device__ __forceinline__ void await_empty(const RingPlace<Stages>& at) {
    ptx::mbarrier_wait(empty[at.stage], at.parity ^ 1);
  }
  __device__ __forceinline__ void expect(const RingPlace<Stages>& at, unsigned bytes) {
    ptx::mbarrier_arrive_expect(full[at.stage], bytes);
  }
  __device__ __forceinline__ void await_full(const RingPlace<Stages>& at) {
    ptx::mbarrier_wait(full[at.stage], at.parity);
  }
  __device__ __forceinline__ void release(int stage) { ptx::mbarrier_arrive(empty[stage]); }
  /// Releases the stage in block `rank` of the cluster, whose producer also writes to this block.
  __device__ __forceinline__ void release_in(int stage, int rank) {
    ptx::mbarrier_arrive_remote_read(empty[stage], rank);
  }
};

}  // namespace rung::inline RUNG_TARGET
