// SPDX-License-Identifier: Apache-2.0
// Tensor copies (cp.async.bulk.tensor, "TMA"): one thread copies a box of a tensor between global
// and shared memory, with edge handling and swizzle. Compute capability 9.0. tensor_map.hpp makes
// the maps; tensor copies complete as bulk copies do (ptx/bulk_copy.hpp):
//
//   ptx::mbarrier_arrive_expect(full, sizeof(tile));        // the whole box, also at the edges
//   ptx::tensor_load(tile, map, {row, column}, full);
//   ...
//   ptx::tensor_store(map, {row, column}, tile);       // after fence_async_proxy and a barrier
//   ptx::bulk_commit();
//   ptx::bulk_wait_read<0>();
//
// Boxes in shared memory are aligned to swizzle_period(): 1024 bytes for Swizzle::bytes_128.
#pragma once

#include <cstdint>

#include "rung/device/ptx/bulk_copy.hpp"
#include "rung/device/tensor_map.hpp"

#if !defined(__CUDACC__)
#include "rung/simt/tensor_copy.hpp"
#endif

namespace rung::inline RUNG_TARGET::ptx {

#if defined(__CUDACC__)

/// Loads the box whose first element is at[0], at[1] ..., which may be partly or wholly outside the
/// tensor. `barrier` counts the bytes of the whole box.
template <int N>
__device__ __forceinline__ void tensor_load(void* to, const TensorMap& map, const int (&at)[N],
                                            MemoryBarrier& barrier) {
  static_assert(N >= 1 && N <= 5);
  const std::uint32_t target = shared_address(to), counter = shared_address(&barrier);
  if constexpr (N == 1) {
    asm volatile(
        "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3}], [%2];" ::"r"(target),
        "l"(&map), "r"(counter), "r"(at[0])
        : "memory");
  } else if constexpr (N == 2) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4}], [%2];" ::"r"(target),
        "l"(&map), "r"(counter), "r"(at[1]), "r"(at[0])
        : "memory");
  } else if constexpr (N == 3) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(target),
        "l"(&map), "r"(counter), "r"(at[2]), "r"(at[1]), "r"(at[0])
        : "memory");
  } else if constexpr (N == 4) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(target),
        "l"(&map), "r"(counter), "r"(at[3]), "r"(at[2]), "r"(at[1]), "r"(at[0])
        : "memory");
  } else {
    asm volatile(
        "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5, %6, %7}], [%2];" ::"r"(target),
        "l"(&map), "r"(counter), "r"(at[4]), "r"(at[3]), "r"(at[2]), "r"(at[1]), "r"(at[0])
        : "memory");
  }
}

/// Loads a box of 2 or 3 axes to the same address in every block of the cluster whose bit is set in
/// `ranks`; each block's own barrier counts the bytes that it receives.
template <int N>
__device__ __forceinline__ void tensor_load_multicast(void* to, const TensorMap& map,
                                                      const int (&at)[N], MemoryBarrier& barrier,
                                                      std::uint16_t ranks) {
  static_assert(N == 2 || N == 3);
  if constexpr (N == 2) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(shared_address(to)),
        "l"(&map), "r"(shared_address(&barrier)), "r"(at[1]), "r"(at[0]), "h"(ranks)
        : "memory");
  } else {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(shared_address(to)),
        "l"(&map), "r"(shared_address(&barrier)), "r"(at[2]), "r"(at[1]), "r"(at[0]), "h"(ranks)
        : "memory");
  }
}

/// Stores a box of shared memory to global memory, as part of the thread's current group. The box
/// may extend beyond the end of an axis, but no coordinate may be negative.
template <int N>
__device__ __forceinline__ void tensor_store(const TensorMap& map, const int (&at)[N],
                                             const void* from) {
  static_assert(N >= 1 && N <= 5);
  const std::uint32_t source = shared_address(from);
  if constexpr (N == 1) {
    asm volatile(
        "cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%0, {%2}], [%1];" ::"l"(&map),
        "r"(source), "r"(at[0])
        : "memory");
  } else if constexpr (N == 2) {
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(
            &map),
        "r"(source), "r"(at[1]), "r"(at[0])
        : "memory");
  } else if constexpr (N == 3) {
    asm volatile(
        "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4}], [%1];" ::
            "l"(&map),
        "r"(source), "r"(at[2]), "r"(at[1]), "r"(at[0])
        : "memory");
  } else if constexpr (N == 4) {
    asm volatile(
        "cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5}], "
        "[%1];" ::"l"(&map),
        "r"(source), "r"(at[3]), "r"(at[2]), "r"(at[1]), "r"(at[0])
        : "memory");
  } else {
    asm volatile(
        "cp.async.bulk.tensor.5d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5, %6}], "
        "[%1];" ::"l"(&map),
        "r"(source), "r"(at[4]), "r"(at[3]), "r"(at[2]), "r"(at[1]), "r"(at[0])
        : "memory");
  }
}

/// Prefetches the map itself before its first use. One thread calls it.
__device__ __forceinline__ void tensor_prefetch_map(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

#else

template <int N>
void tensor_load(void* to, const TensorMap& map, const int (&at)[N], MemoryBarrier& barrier,
                 simt::Place place = simt::Place::current()) {
  static_assert(N >= 1 && N <= 5);
  simt::tensor_load(to, &map, at, N, &barrier.state, place);
}
template <int N>
void tensor_load_multicast(void* to, const TensorMap& map, const int (&at)[N],
                           MemoryBarrier& barrier, std::uint16_t ranks,
                           simt::Place place = simt::Place::current()) {
  static_assert(N == 2 || N == 3);
  simt::tensor_load_multicast(to, &map, at, N, &barrier.state, ranks, place);
}
template <int N>
void tensor_store(const TensorMap& map, const int (&at)[N], const void* from,
                  simt::Place place = simt::Place::current()) {
  static_assert(N >= 1 && N <= 5);
  simt::tensor_store(&map, at, N, from, place);
}
inline void tensor_prefetch_map(const TensorMap&) {}

#endif

}  // namespace rung::inline RUNG_TARGET::ptx
