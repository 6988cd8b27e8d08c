// SPDX-License-Identifier: Apache-2.0
// mbarrier: barriers that live in shared memory and count threads' arrivals and copied bytes.
// Compute capability 9.0; files that use them are named *.sm90a.cu.
//
// A phase completes when the announced number of arrivals has come and all announced bytes have
// landed; the barrier then starts over with the next phase. Phases alternate in parity, 0 first:
// wait(parity) returns when the phase of that parity has completed. Waiting for parity 1 on a fresh
// barrier returns at once, which is what a producer does whose slots are all empty at first.
//
//   struct Tile { alignas(128) float a[2][1024]; ptx::MemoryBarrier full[2]; };
//   if (threadIdx.x == 0) {
//     for (ptx::MemoryBarrier& full : tile.full) ptx::mbarrier_init(full, 1);
//     ptx::mbarrier_fence_init();
//   }
//   __syncthreads();
//   if (threadIdx.x == 0) {
//     ptx::mbarrier_arrive_expect(tile.full[0], 4096);   // one arrival, and 4096 bytes to come
//     ptx::bulk_load(tile.a[0], x, 4096, tile.full[0]);  // ptx/bulk_copy.hpp
//   }
//   ptx::mbarrier_wait(tile.full[0], 0);                 // every thread that reads the tile
//
// A use's parity is (k / stages) & 1 for the k-th tile of a ring of `stages`.
#pragma once

#include <cstdint>

#include "rung/device/device.hpp"

#if !defined(__CUDACC__)
#include "rung/simt/mbarrier.hpp"
#endif

namespace rung::inline RUNG_TARGET::ptx {

/// A member of a shared<Layout>() struct. Undefined until mbarrier_init.
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
/// Makes initialized barriers known to copies and to the other blocks of the cluster.
__device__ __forceinline__ void mbarrier_fence_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
/// Invalidates the barrier; required before its memory is reused.
__device__ __forceinline__ void mbarrier_invalidate(MemoryBarrier& barrier) {
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(shared_address(&barrier)) : "memory");
}

/// One arrival; publishes what this thread wrote to those that wait.
__device__ __forceinline__ void mbarrier_arrive(MemoryBarrier& barrier) {
  asm volatile(
      "mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(shared_address(&barrier))
      : "memory");
}
/// Announces so many bytes of copies, then arrives.
__device__ __forceinline__ void mbarrier_arrive_expect(MemoryBarrier& barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(
                   shared_address(&barrier)),
               "r"(bytes)
               : "memory");
}
/// Announces bytes without arriving.
__device__ __forceinline__ void mbarrier_expect(MemoryBarrier& barrier, unsigned bytes) {
  asm volatile(
      "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&barrier)),
      "r"(bytes)
      : "memory");
}
/// An arrival at the barrier that is at this place in the shared memory of block `rank` of the
/// cluster. Those that wait for it use mbarrier_wait_cluster.
__device__ __forceinline__ void mbarrier_arrive_remote(MemoryBarrier& barrier, int rank) {
  asm volatile(
      "{\n .reg .b32 remote;\n mapa.shared::cluster.u32 remote, %0, %1;\n"
      " mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n}" ::"r"(
          shared_address(&barrier)),
      "r"(rank)
      : "memory");
}

/// Arrives for a thread that has only read what the barrier guards, by copies or wgmma it has
/// waited for. Publishes nothing beyond its block, which would take a device-wide fence each time.
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
/// Waits for arrivals that come from other blocks of the cluster.
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
