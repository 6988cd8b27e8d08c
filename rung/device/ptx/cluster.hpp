// SPDX-License-Identifier: Apache-2.0
// Clusters: up to 8 neighboring blocks (16 if the device allows) that run at the same time,
// synchronize, and access each other's shared memory. Compute capability 9.0; launched with
// .cluster = {x, y, z}, where each extent divides the grid's.
//
//   float* theirs = ptx::cluster_map(&shared<Sums>().value, rank);   // the value of block `rank`
//   ptx::cluster_sync();        // all blocks of the cluster have started and written their value
//   const float sum = *theirs;  // a plain load, store or atomic
//   ptx::cluster_sync();        // no block exits, or overwrites its value, before all have read
//
// Shared memory of a block is invalid once the block exits: hence the last cluster_sync() above.
// The simulator poisons the memory when the block exits.
#pragma once

#include <cstdint>

#include "rung/device/device.hpp"

#if !defined(__CUDACC__)
#include "rung/simt/cluster.hpp"
#endif

namespace rung::inline RUNG_TARGET::ptx {

#if defined(__CUDACC__)

/// Returns the index of this block in its cluster, x fastest; 0 without clusters.
__device__ __forceinline__ int cluster_rank() {
  int rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
/// Returns the number of blocks per cluster; 1 without clusters.
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

/// Arrives at the cluster's barrier and releases this thread's writes. cluster_wait() must follow
/// before the next arrival.
__device__ __forceinline__ void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
}
/// Waits until every thread of the cluster that has not exited has arrived.
__device__ __forceinline__ void cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}
/// Arrives without releasing writes, except for mbarriers after mbarrier_fence_init(): signals that
/// the block has started, and does not wait for stores. All lanes of a warp must call it and
/// cluster_wait_begun() together.
__device__ __forceinline__ void cluster_arrive_begun() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
__device__ __forceinline__ void cluster_wait_begun() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
/// Synchronizes all threads of the cluster.
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
