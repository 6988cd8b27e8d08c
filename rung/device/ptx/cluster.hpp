// SPDX-License-Identifier: Apache-2.0
// Clusters: up to 8 neighboring blocks that run at the same time, synchronize, and reach into each
// other's shared memory. Compute capability 9.0; launched with .cluster = {x, y, z}, of which each
// extent divides the grid's.
//
//   float* theirs = ptx::cluster_map(&shared<Sums>().value, rank);   // block `rank`'s own value
//   ptx::cluster_sync();        // they have written it; also: every block of the cluster runs
//   const float sum = *theirs;  // a plain load, store or atomic
//   ptx::cluster_sync();        // nobody exits, or writes it again, before all have read
//
// A block that exits while others still read its shared memory takes it with it: the last
// cluster_sync above is not optional. The simulator poisons it at that moment.
#pragma once

#include <cstdint>

#include "rung/device/device.hpp"

#if !defined(__CUDACC__)
#include "rung/simt/cluster.hpp"
#endif

namespace rung::inline RUNG_TARGET::ptx {

#if defined(__CUDACC__)

/// This block's number within its cluster, x fastest. 0 without clusters.
__device__ __forceinline__ int cluster_rank() {
  int rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
/// Blocks in a cluster. 1 without clusters.
__device__ __forceinline__ int cluster_size() {
  int size;
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  return size;
}

/// Returns the index of this cluster in the grid, for clusters along x.
__device__ __forceinline__ unsigned cluster_index() {
  unsigned index;
  asm volatile("mov.u32 %0, %%clusterid.x;" : "=r"(index));
  return index;
}

/// Arrives; publishes what this thread wrote. cluster_wait() must follow before the next arrival.
__device__ __forceinline__ void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
}
/// Waits until every thread of the cluster that has not exited has arrived.
__device__ __forceinline__ void cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}
/// The two for warps whose threads call together. This arrival publishes nothing but barriers
/// behind mbarrier_fence_init(): it says that the block has begun, and waits for no store.
__device__ __forceinline__ void cluster_arrive_begun() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
__device__ __forceinline__ void cluster_wait_begun() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
/// A barrier of all threads of the cluster.
__device__ __forceinline__ void cluster_sync() {
  cluster_arrive();
  cluster_wait();
}

/// Returns the same address in the shared memory of block `rank` of the cluster.
template <class T>
__device__ __forceinline__ T* cluster_map(T* pointer, int rank) {
  std::uint64_t mapped;
  asm volatile("mapa.u64 %0, %1, %2;" : "=l"(mapped) : "l"(pointer), "r"(rank));
  return reinterpret_cast<T*>(mapped);
}

#else

inline int cluster_rank() { return simt::cluster_rank(); }
inline int cluster_size() { return simt::cluster_size(); }
inline unsigned cluster_index() { return blockIdx.x / static_cast<unsigned>(simt::cluster_size()); }
inline void cluster_arrive(simt::Place place = simt::Place::current()) {
  simt::cluster_arrive(place);
}
inline void cluster_wait(simt::Place place = simt::Place::current()) { simt::cluster_wait(place); }
inline void cluster_arrive_begun(simt::Place place = simt::Place::current()) {
  simt::cluster_arrive(place);
}
inline void cluster_wait_begun(simt::Place place = simt::Place::current()) {
  simt::cluster_wait(place);
}
inline void cluster_sync(simt::Place place = simt::Place::current()) {
  simt::cluster_arrive(place);
  simt::cluster_wait(place);
}
template <class T>
T* cluster_map(T* pointer, int rank, simt::Place place = simt::Place::current()) {
  return static_cast<T*>(
      const_cast<void*>(simt::cluster_map(static_cast<const void*>(pointer), rank, place)));
}

#endif

}  // namespace rung::inline RUNG_TARGET::ptx
