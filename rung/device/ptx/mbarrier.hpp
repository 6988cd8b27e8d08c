// SPDX-License-Identifier: Apache-2.0
// mbarrier: barriers in shared memory that count arrivals of threads and bytes of copies. Compute
// capability 9.0; files that use them are named *.sm90a.cu.
//
// A phase completes when all its arrivals have occurred and all expected bytes have been copied;
// the next phase then begins. Phases alternate in parity, 0 first: mbarrier_wait(parity) returns
// when the phase of that parity has completed. Waiting for parity 1 on a fresh barrier returns at
// once, which suits a producer: its stages are all empty at first.
//
//   struct Tile { alignas(128) float a[2][1024]; ptx::MemoryBarrier full[2]; };
//   if (threadIdx.x == 0) {
//     for (ptx::MemoryBarrier& full : tile.full) ptx::mbarrier_init(full, 1);
//     ptx::mbarrier_fence_init();
//   }
//   __syncthreads();
//   if (threadIdx.x == 0) {
//     ptx::mbarrier_arrive_expect(tile.full[0], 4096);   // one arrival, 4096 bytes expected
//     ptx::bulk_load(tile.a[0], x, 4096, tile.full[0]);  // ptx/bulk_copy.hpp
//   }
//   ptx::mbarrier_wait(tile.full[0], 0);                 // every thread that reads the tile
//
// The parity for the k-th tile in a ring of `stages` stages is (k / stages) & 1.
#pragma once

#include <cstdint>

#include "rung/device/device.hpp"

#if !defined(__CUDACC__)
#include "rung/simt/mbarrier.hpp"
#endif

namespace rung::inline RUNG_TARGET::ptx {

/// mbarrier object, a member of a shared<Layout>() struct; undefined until mbarrier_init().
struct alignas(8) MemoryBarrier {
  std::uint64_t state;
};

#if defined(__CUDACC__)

/// Initializes a barrier. One thread calls it, then mbarrier_fence_init() and a barrier of the
/// block (or cluster).
__device__ __forceinline__ void mbarrier_init(MemoryBarrier& barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&barrier)),
               "r"(arrivals)
               : "memory");
}
/// Makes initialized barriers visible to copies and to the other blocks of the cluster.
__device__ __forceinline__ void mbarrier_fence_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
/// Invalidates the barrier; required before its memory is reused.
__device__ __forceinline__ void mbarrier_invalidate(MemoryBarrier& barrier) {
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(shared_address(&barrier)) : "memory");
}

/// Arrives once; releases this thread's writes to waiting threads of the block.
__device__ __forceinline__ void mbarrier_arrive(MemoryBarrier& barrier) {
  asm volatile(
      "mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(shared_address(&barrier))
      : "memory");
}
/// Expects `bytes` bytes of copies in the current phase, then arrives.
__device__ __forceinline__ void mbarrier_arrive_expect(MemoryBarrier& barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(
                   shared_address(&barrier)),
               "r"(bytes)
               : "memory");
}
/// Expects `bytes` bytes of copies in the current phase, without arriving.
__device__ __forceinline__ void mbarrier_expect(MemoryBarrier& barrier, unsigned bytes) {
  asm volatile(
      "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&barrier)),
      "r"(bytes)
      : "memory");
}
/// Arrives at block `rank`'s copy of `barrier`, which is in this block's shared memory. Waiting
/// threads use mbarrier_wait_cluster().
__device__ __forceinline__ void mbarrier_arrive_remote(MemoryBarrier& barrier, int rank) {
  asm volatile(
      "{\n .reg .b32 remote;\n mapa.shared::cluster.u32 remote, %0, %1;\n"
      " mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n}" ::"r"(
          shared_address(&barrier)),
      "r"(rank)
      : "memory");
}

/// Arrives at block `rank`'s copy of `barrier` for a thread that only read the guarded data, by
/// completed copies or wgmma. Releases no writes to other blocks, which would take a device-wide
/// fence.
__device__ __forceinline__ void mbarrier_arrive_remote_read(MemoryBarrier& barrier, int rank) {
  asm volatile(
      "{\n .reg .b32 remote;\n mapa.shared::cluster.u32 remote, %0, %1;\n"
      " mbarrier.arrive.release.cta.shared::cluster.b64 _, [remote];\n}" ::"r"(
          shared_address(&barrier)),
      "r"(rank)
      : "memory");
}

/// Returns true if the phase of this parity has completed. May suspend the thread for a while.
__device__ __forceinline__ bool mbarrier_try_wait(MemoryBarrier& barrier, unsigned parity) {
  std::uint32_t done;
  asm volatile(
      "{\n .reg .pred p;\n mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2;\n"
      " selp.u32 %0, 1, 0, p;\n}"
      : "=r"(done)
      : "r"(shared_address(&barrier)), "r"(parity)
      : "memory");
  return done != 0;
}
__device__ __forceinline__ void mbarrier_wait(MemoryBarrier& barrier, unsigned parity) {
  while (!mbarrier_try_wait(barrier, parity)) {
  }
}
/// Waits for the phase of this parity, with acquire semantics for the whole cluster.
__device__ __forceinline__ void mbarrier_wait_cluster(MemoryBarrier& barrier, unsigned parity) {
  std::uint32_t done = 0;
  while (done == 0) {
    asm volatile(
        "{\n .reg .pred p;\n"
        " mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n"
        " selp.u32 %0, 1, 0, p;\n}"
        : "=r"(done)
        : "r"(shared_address(&barrier)), "r"(parity)
        : "memory");
  }
}

#else

inline void mbarrier_init(MemoryBarrier& barrier, int arrivals,
                          simt::Place place = simt::Place::current()) {
  simt::mbarrier_init(&barrier.state, arrivals, place);
}
inline void mbarrier_fence_init() { simt::fence_mbarrier_init(); }
inline void mbarrier_invalidate(MemoryBarrier& barrier,
                                simt::Place place = simt::Place::current()) {
  simt::mbarrier_invalidate(&barrier.state, place);
}
inline void mbarrier_arrive(MemoryBarrier& barrier, simt::Place place = simt::Place::current()) {
  simt::mbarrier_arrive(&barrier.state, 0, place);
}
inline void mbarrier_arrive_expect(MemoryBarrier& barrier, unsigned bytes,
                                   simt::Place place = simt::Place::current()) {
  simt::mbarrier_arrive(&barrier.state, bytes, place);
}
inline void mbarrier_expect(MemoryBarrier& barrier, unsigned bytes,
                            simt::Place place = simt::Place::current()) {
  simt::mbarrier_expect(&barrier.state, bytes, place);
}
inline void mbarrier_arrive_remote(MemoryBarrier& barrier, int rank,
                                   simt::Place place = simt::Place::current()) {
  simt::mbarrier_arrive_remote(&barrier.state, rank, place);
}
inline void mbarrier_arrive_remote_read(MemoryBarrier& barrier, int rank,
                                        simt::Place place = simt::Place::current()) {
  simt::mbarrier_arrive_remote(&barrier.state, rank, place);
}
inline bool mbarrier_try_wait(MemoryBarrier& barrier, unsigned parity,
                              simt::Place place = simt::Place::current()) {
  return simt::mbarrier_try_wait(&barrier.state, parity, place);
}
inline void mbarrier_wait(MemoryBarrier& barrier, unsigned parity,
                          simt::Place place = simt::Place::current()) {
  simt::mbarrier_wait(&barrier.state, parity, place);
}
inline void mbarrier_wait_cluster(MemoryBarrier& barrier, unsigned parity,
                                  simt::Place place = simt::Place::current()) {
  simt::mbarrier_wait(&barrier.state, parity, place);
}

#endif

}  // namespace rung::inline RUNG_TARGET::ptx
