// SPDX-License-Identifier: Apache-2.0
// Bulk copies (cp.async.bulk): one thread issues a copy of kilobytes between global and shared
// memory, which TMA performs. Compute capability 9.0.
//
// Addresses and sizes are multiples of 16 bytes. Loads complete on an mbarrier (ptx/mbarrier.hpp);
// stores and reductions complete by groups of the issuing thread:
//
//   tile.out[i] = ...;                       // every thread writes its part of shared memory
//   ptx::fence_async_proxy();                // every thread: makes its writes visible to copies
//   __syncthreads();
//   if (threadIdx.x == 0) {
//     ptx::bulk_store(y, tile.out, bytes);
//     ptx::bulk_commit();
//     ptx::bulk_wait_read<0>();              // before tile.out is written again, and before exit
//   }
#pragma once

#include <cstdint>
#include <type_traits>

#include "rung/device/ptx/mbarrier.hpp"

#if !defined(__CUDACC__)
#include "rung/simt/bulk_copy.hpp"
#endif

namespace rung::inline RUNG_TARGET::ptx {

/// True for the types that bulk_reduce_add() supports.
template <class T>
inline constexpr bool is_bulk_number =
    std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, int> ||
    std::is_same_v<T, unsigned> || std::is_same_v<T, unsigned long long>;

#if defined(__CUDACC__)

/// Copies from global to shared memory. `barrier` counts the bytes: expect them first.
__device__ __forceinline__ void bulk_load(void* to, const void* from, unsigned bytes,
                                          MemoryBarrier& barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(to)),
      "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(&barrier))
      : "memory");
}
/// Copies to the same address in every block of the cluster whose bit is set in `ranks`; each
/// block's own barrier counts the bytes that it receives.
__device__ __forceinline__ void bulk_load_multicast(void* to, const void* from, unsigned bytes,
                                                    MemoryBarrier& barrier, std::uint16_t ranks) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1], %2, [%3], %4;" ::"r"(shared_address(to)),
      "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(&barrier)), "h"(ranks)
      : "memory");
}
/// Copies from this block's shared memory to that of block `rank` of the cluster. `to` and
/// `barrier` are addresses in this block, mapped to the other block. In a launch without clusters
/// it is an illegal instruction (H200), even with the block itself as target.
__device__ __forceinline__ void bulk_send(void* to, const void* from, unsigned bytes,
                                          MemoryBarrier& barrier, int rank) {
  asm volatile(
      "{\n .reg .b32 target, counter;\n mapa.shared::cluster.u32 target, %0, %4;\n"
      " mapa.shared::cluster.u32 counter, %3, %4;\n"
      " cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [target], [%1], "
      "%2, [counter];\n}" ::"r"(shared_address(to)),
      "r"(shared_address(from)), "r"(bytes), "r"(shared_address(&barrier)), "r"(rank)
      : "memory");
}
/// Copies from shared to global memory, as part of the thread's current group.
__device__ __forceinline__ void bulk_store(void* to, const void* from, unsigned bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                   __cvta_generic_to_global(to)),
               "r"(shared_address(from)), "r"(bytes)
               : "memory");
}
/// Adds `count` elements of shared memory to global memory, each element atomically.
template <class T>
__device__ __forceinline__ void bulk_reduce_add(T* to, const T* from, int count) {
  static_assert(is_bulk_number<T>);
  const unsigned bytes = static_cast<unsigned>(count) * static_cast<unsigned>(sizeof(T));
  const auto global = __cvta_generic_to_global(to);
  const std::uint32_t local = shared_address(from);
  if constexpr (std::is_same_v<T, float>) {
    asm volatile(
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(global),
        "r"(local), "r"(bytes)
        : "memory");
  } else if constexpr (std::is_same_v<T, double>) {
    asm volatile(
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f64 [%0], [%1], %2;" ::"l"(global),
        "r"(local), "r"(bytes)
        : "memory");
  } else if constexpr (sizeof(T) == 4) {
    asm volatile(
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], %2;" ::"l"(global),
        "r"(local), "r"(bytes)
        : "memory");
  } else {
    asm volatile(
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u64 [%0], [%1], %2;" ::"l"(global),
        "r"(local), "r"(bytes)
        : "memory");
  }
}

/// Closes the thread's current group of stores.
__device__ __forceinline__ void bulk_commit() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
/// Waits until at most `Pending` of this thread's groups are in flight; the writes of the others
/// are complete.
template <int Pending>
__device__ __forceinline__ void bulk_wait() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(Pending) : "memory");
}
/// Waits until all but `Pending` groups have read shared memory, which can then be reused; their
/// writes may be in flight.
template <int Pending>
__device__ __forceinline__ void bulk_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Pending) : "memory");
}
/// Makes a thread's ordinary writes to shared memory visible to copies. Each writer calls it before
/// the barrier after which one thread starts the copy.
__device__ __forceinline__ void fence_async_proxy() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
/// Prefetches global memory into L2.
__device__ __forceinline__ void bulk_prefetch(const void* from, unsigned bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(from)),
               "r"(bytes)
               : "memory");
}

#else

inline void bulk_load(void* to, const void* from, unsigned bytes, MemoryBarrier& barrier,
                      simt::Place place = simt::Place::current()) {
  simt::bulk_load(to, from, bytes, &barrier.state, place);
}
inline void bulk_load_multicast(void* to, const void* from, unsigned bytes, MemoryBarrier& barrier,
                                std::uint16_t ranks, simt::Place place = simt::Place::current()) {
  simt::bulk_load_multicast(to, from, bytes, &barrier.state, ranks, place);
}
inline void bulk_send(void* to, const void* from, unsigned bytes, MemoryBarrier& barrier, int rank,
                      simt::Place place = simt::Place::current()) {
  simt::bulk_send(to, from, bytes, &barrier.state, rank, place);
}
inline void bulk_store(void* to, const void* from, unsigned bytes,
                       simt::Place place = simt::Place::current()) {
  simt::bulk_store(to, from, bytes, nullptr, place);
}
template <class T>
void bulk_reduce_add(T* to, const T* from, int count, simt::Place place = simt::Place::current()) {
  static_assert(is_bulk_number<T>);
  simt::bulk_store(to, from, static_cast<unsigned>(count) * static_cast<unsigned>(sizeof(T)),
                   &simt::add_elements<T>, place);
}
inline void bulk_commit() { simt::bulk_commit(); }
template <int Pending>
void bulk_wait() {
  simt::bulk_wait_group(Pending, false);
}
template <int Pending>
void bulk_wait_read() {
  simt::bulk_wait_group(Pending, true);
}
inline void fence_async_proxy() { simt::fence_async_proxy(); }
inline void bulk_prefetch(const void* from, unsigned bytes,
                          simt::Place place = simt::Place::current()) {
  simt::bulk_prefetch(from, bytes, place);
}

#endif

}  // namespace rung::inline RUNG_TARGET::ptx
