// SPDX-License-Identifier: Apache-2.0
// cuda::ptx and cuda::device: the functions for mbarriers, bulk and tensor copies and clusters that
// occur in the programming guide. rung_cuda/ptx_hopper.h implements the instructions.
#pragma once

#include <type_traits>

#include "rung_cuda/barrier_classes.h"
#include "rung_cuda/ptx.h"

namespace cuda::ptx {

using rung::ptx::SharedPlace;

template <int number>
using n32_t = std::integral_constant<int, number>;

// State spaces, memory orders and scopes are distinct types, so that overloads can distinguish the
// directions of copies.
struct space_global_t {};
struct space_shared_t {};
struct space_cluster_t {};
inline constexpr space_global_t space_global{};
inline constexpr space_shared_t space_shared{};
inline constexpr space_cluster_t space_cluster{};
struct sem_release_t {};
struct sem_acquire_t {};
struct sem_relaxed_t {};
inline constexpr sem_release_t sem_release{};
inline constexpr sem_acquire_t sem_acquire{};
inline constexpr sem_relaxed_t sem_relaxed{};
struct scope_cta_t {};
struct scope_cluster_t {};
inline constexpr scope_cta_t scope_cta{};
inline constexpr scope_cluster_t scope_cluster{};
struct op_add_t {};
inline constexpr op_add_t op_add{};

inline SharedPlace rung_place(const void* own) {
  return {const_cast<char*>(static_cast<const char*>(own)), -1};
}

// --- mbarriers ---

inline void mbarrier_init(std::uint64_t* at, unsigned count,
                          RungPlace place = RungPlace::current()) {
  rung::simt::mbarrier_init(at, static_cast<int>(count), place);
}
inline std::uint64_t mbarrier_arrive(std::uint64_t* at, RungPlace place = RungPlace::current()) {
  return rung::ptx::barrier_arrive(rung_place(at), 0, 1, false, place);
}
template <class Sem, class Scope>
inline std::uint64_t mbarrier_arrive(Sem, Scope, space_shared_t, std::uint64_t* at,
                                     unsigned count = 1, RungPlace place = RungPlace::current()) {
  return rung::ptx::barrier_arrive(rung_place(at), 0, static_cast<int>(count), false, place);
}
template <class Sem, class Scope>
inline std::uint64_t mbarrier_arrive_expect_tx(Sem, Scope, space_shared_t, std::uint64_t* at,
                                               unsigned bytes,
                                               RungPlace place = RungPlace::current()) {
  return rung::ptx::barrier_arrive(rung_place(at), bytes, 1, false, place);
}
inline bool mbarrier_try_wait(std::uint64_t* at, std::uint64_t state,
                              RungPlace place = RungPlace::current()) {
  return rung::ptx::barrier_test_state(rung_place(at), state, place);
}
inline bool mbarrier_test_wait(std::uint64_t* at, std::uint64_t state,
                               RungPlace place = RungPlace::current()) {
  return mbarrier_try_wait(at, state, place);
}
inline bool mbarrier_try_wait_parity(std::uint64_t* at, unsigned parity,
                                     RungPlace place = RungPlace::current()) {
  return rung::ptx::barrier_test(rung_place(at), parity, place);
}
template <class Sem, class Scope>
inline bool mbarrier_try_wait_parity(Sem, Scope, std::uint64_t* at, unsigned parity,
                                     RungPlace place = RungPlace::current()) {
  return mbarrier_try_wait_parity(at, parity, place);
}

// --- fences, clusters ---

inline void fence_proxy_async() { rung::simt::fence_async_proxy(); }
inline void fence_proxy_async(space_shared_t) { rung::simt::fence_async_proxy(); }
inline void fence_proxy_async(space_cluster_t) { rung::simt::fence_async_proxy(); }
inline void fence_proxy_async(space_global_t) { rung::simt::fence_async_proxy(); }
inline void fence_mbarrier_init(sem_release_t, scope_cluster_t) {
  rung::simt::fence_mbarrier_init();
}
inline void barrier_cluster_arrive(RungPlace place = RungPlace::current()) {
  rung::cuda::cluster_arrive(place);
}
inline void barrier_cluster_wait(RungPlace place = RungPlace::current()) {
  rung::cuda::cluster_wait(place);
}
inline unsigned get_sreg_cluster_ctarank() { return rung::ptx::special_cluster_ctarank(); }
inline unsigned get_sreg_cluster_nctarank() { return rung::ptx::special_cluster_nctarank(); }

// --- copies; loads into shared memory signal the barrier ---

inline void cp_async_bulk(space_cluster_t, space_global_t, void* to, const void* from,
                          unsigned bytes, std::uint64_t* barrier,
                          RungPlace place = RungPlace::current()) {
  rung::simt::bulk_load(to, from, bytes, barrier, place);
}
inline void cp_async_bulk(space_shared_t, space_global_t, void* to, const void* from,
                          unsigned bytes, std::uint64_t* barrier,
                          RungPlace place = RungPlace::current()) {
  rung::simt::bulk_load(to, from, bytes, barrier, place);
}
inline void cp_async_bulk(space_cluster_t, space_global_t, void* to, const void* from,
                          unsigned bytes, std::uint64_t* barrier, const std::uint16_t& ranks,
                          RungPlace place = RungPlace::current()) {
  rung::simt::bulk_load_multicast(to, from, bytes, barrier, ranks, place);
}
inline void cp_async_bulk(space_global_t, space_shared_t, void* to, const void* from,
                          unsigned bytes, RungPlace place = RungPlace::current()) {
  rung::simt::bulk_store(to, from, bytes, nullptr, place);
}
template <class T>
inline void cp_reduce_async_bulk(space_global_t, space_shared_t, op_add_t, T* to, const T* from,
                                 unsigned bytes, RungPlace place = RungPlace::current()) {
  rung::simt::bulk_store(to, from, bytes, &rung::simt::add_elements<T>, place);
}
template <int rank>
inline rung::ptx::Coordinates<rank> rung_coordinates(const std::int32_t (&given)[rank]) {
  rung::ptx::Coordinates<rank> reversed;
  for (int i = 0; i < rank; ++i) reversed.at[i] = given[rank - 1 - i];
  return reversed;
}
template <class Space, int rank>
  requires(!std::is_same_v<Space, space_global_t>)
inline void cp_async_bulk_tensor(Space, space_global_t, void* to, const void* map,
                                 const std::int32_t (&at)[rank], std::uint64_t* barrier,
                                 RungPlace place = RungPlace::current()) {
  rung::simt::tensor_load(to, map, rung_coordinates(at).at, rank, barrier, place);
}
template <int rank>
inline void cp_async_bulk_tensor(space_global_t, space_shared_t, const void* map,
                                 const std::int32_t (&at)[rank], const void* from,
                                 RungPlace place = RungPlace::current()) {
  rung::simt::tensor_store(map, rung_coordinates(at).at, rank, from, place);
}
inline void cp_async_bulk_commit_group() { rung::simt::bulk_commit(); }
template <int pending>
inline void cp_async_bulk_wait_group(n32_t<pending>) {
  rung::simt::bulk_wait_group(pending, false);
}
template <int pending>
inline void cp_async_bulk_wait_group_read(n32_t<pending>) {
  rung::simt::bulk_wait_group(pending, true);
}

}  // namespace cuda::ptx
