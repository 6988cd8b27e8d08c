// SPDX-License-Identifier: Apache-2.0
// cp.async: asynchronous copies from global to shared memory.
//
//   ptx::async_copy<16>(&tile[i], &x[j]);   // issue any number of copies
//   ptx::async_commit();                    // make them a group
//   ptx::async_wait<1>();                   // all of this thread's groups but one are complete
//   __syncthreads();                        // the copies of all threads are visible
#pragma once

#include "rung/device/device.hpp"

#if !defined(__CUDACC__)
#include "rung/simt/async_copy.hpp"
#endif

namespace rung::inline RUNG_TARGET::ptx {

/// Caches that a copy allocates in: L1 and L2 (required below 16 bytes), or L2 only.
enum class AsyncCache { all, second_level };
template <int Bytes>
inline constexpr AsyncCache default_cache =
    Bytes == 16 ? AsyncCache::second_level : AsyncCache::all;

#if defined(__CUDACC__)

/// Copies `valid` bytes and fills the rest of `Bytes` with zeros. Both addresses are aligned to
/// Bytes; with valid = 0 the source is not read, but must be a pointer into global memory.
template <int Bytes, AsyncCache Cache = default_cache<Bytes>>
__device__ __forceinline__ void async_copy(void* to, const void* from, int valid = Bytes) {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16);
  static_assert(Bytes == 16 || Cache == AsyncCache::all, "cp.async.cg copies 16 bytes");
  if constexpr (Cache == AsyncCache::second_level) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(to)),
                 "l"(__cvta_generic_to_global(from)), "n"(Bytes), "r"(valid)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(to)),
                 "l"(__cvta_generic_to_global(from)), "n"(Bytes), "r"(valid)
                 : "memory");
  }
}

__device__ __forceinline__ void async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

/// Waits until at most `Pending` of this thread's groups are in flight.
template <int Pending>
__device__ __forceinline__ void async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

__device__ __forceinline__ void async_wait_all() {
  asm volatile("cp.async.wait_all;" ::: "memory");
}

#else

template <int Bytes, AsyncCache Cache = default_cache<Bytes>>
void async_copy(void* to, const void* from, int valid = Bytes,
                simt::Place place = simt::Place::current()) {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16);
  static_assert(Bytes == 16 || Cache == AsyncCache::all, "cp.async.cg copies 16 bytes");
  simt::async_copy(to, from, Bytes, valid, place);
}
inline void async_commit() { simt::async_commit(); }
template <int Pending>
void async_wait() {
  simt::async_wait_group(Pending);
}
inline void async_wait_all() { simt::async_wait_all(); }

#endif

}  // namespace rung::inline RUNG_TARGET::ptx
