// SPDX-License-Identifier: Apache-2.0
// PTX of compute capability 9.0: mbarriers, bulk and tensor copies, clusters. Addresses are
// pointers into the calling block's shared memory; `rank` selects another block of the cluster, -1
// the calling block.
#pragma once

#include "rung/simt/bulk_copy.hpp"
#include "rung/simt/cluster.hpp"
#include "rung/simt/cluster_send.hpp"
#include "rung/simt/limits.hpp"
#include "rung/simt/mbarrier.hpp"
#include "rung/simt/tensor_copy.hpp"
#include "rung/simt/wgmma.hpp"
#include "rung_cuda/ptx_memory.h"

namespace rung::ptx {

/// Decoded shared address: a 32-bit .shared::cluster address, or a generic address (always of the
/// calling block).
struct SharedPlace {
  char* own;
  int rank;
  [[nodiscard]] std::uint64_t* barrier() const { return reinterpret_cast<std::uint64_t*>(own); }
};
template <class T>
inline SharedPlace shared_place(T address) {
  const auto number = static_cast<unsigned>(get<unsigned long long>(address));
  const int rank = static_cast<int>(number >> rank_shift) - 1;
  // The calling block's own rank is represented as -1.
  return {cuda::shared_base + (number & offset_mask), rank == simt::cluster_rank() ? -1 : rank};
}
template <class T>
inline SharedPlace generic_place(T address) {
  return {pointer(address), -1};
}

// --- mbarriers ---

/// Arrives and returns the state before the arrival; for another block's barrier returns 0.
inline unsigned long long barrier_arrive(SharedPlace at, unsigned bytes, int count, bool drops,
                                         Place place) {
  if (at.rank >= 0) {
    simt::mbarrier_arrive_remote(at.barrier(), at.rank, place, bytes, count);
    return 0;
  }
  const unsigned long long before = simt::mbarrier_state(at.barrier(), place);
  if (drops) {
    simt::mbarrier_drop(at.barrier(), bytes, place, count);
  } else {
    simt::mbarrier_arrive(at.barrier(), bytes, place, count);
  }
  return before;
}
inline bool barrier_test(SharedPlace at, unsigned parity, Place place) {
  return simt::mbarrier_try_wait(at.barrier(), parity, place);
}
inline bool barrier_test_state(SharedPlace at, unsigned long long state, Place place) {
  return simt::mbarrier_try_wait(at.barrier(), simt::mbarrier_parity(state), place, true);
}
/// Makes the barrier track this thread's cp.async copies. `counted`: the barrier expects an arrival
/// for them; otherwise it only tracks the copies.
inline void barrier_arrive_behind_copies(SharedPlace at, bool counted, Place place) {
  simt::async_arrive(at.barrier(), counted, place);
}

// --- bulk and tensor copies ---

inline void bulk_load(SharedPlace to, const char* from, unsigned bytes, SharedPlace barrier,
                      Place place) {
  if (to.rank >= 0) {
    simt::bulk_load_multicast(to.own, from, bytes, barrier.barrier(),
                              static_cast<std::uint16_t>(1u << to.rank), place);
  } else {
    simt::bulk_load(to.own, from, bytes, barrier.barrier(), place);
  }
}
inline void bulk_multicast(SharedPlace to, const char* from, unsigned bytes, SharedPlace barrier,
                           unsigned ranks, Place place) {
  simt::bulk_load_multicast(to.own, from, bytes, barrier.barrier(),
                            static_cast<std::uint16_t>(ranks), place);
}
inline void bulk_send(SharedPlace to, SharedPlace from, unsigned bytes, SharedPlace barrier,
                      Place place) {
  simt::bulk_send(to.own, from.own, bytes, barrier.barrier(),
                  to.rank >= 0 ? to.rank : simt::cluster_rank(), place);
}
inline void bulk_store(char* to, SharedPlace from, unsigned bytes, Place place) {
  simt::bulk_store(to, from.own, bytes, nullptr, place);
}
template <class T>
inline void bulk_add(char* to, SharedPlace from, unsigned bytes, Place place) {
  simt::bulk_store(to, from.own, bytes, &simt::add_elements<T>, place);
}

/// Coordinates in reverse order: PTX lists the innermost axis first, the simulator last.
template <int rank>
struct Coordinates {
  int at[rank];
};
template <class... T>
inline auto coordinates(const T&... given) {
  constexpr int count = sizeof...(T);
  const int forward[] = {get<int>(given)...};
  Coordinates<count> reversed;
  for (int i = 0; i < count; ++i) reversed.at[i] = forward[count - 1 - i];
  return reversed;
}
template <int rank>
inline void tensor_load(SharedPlace to, const char* map, const Coordinates<rank>& at,
                        SharedPlace barrier, Place place) {
  if (to.rank >= 0) {
    simt::tensor_load_multicast(to.own, map, at.at, rank, barrier.barrier(),
                                static_cast<std::uint16_t>(1u << to.rank), place);
  } else {
    simt::tensor_load(to.own, map, at.at, rank, barrier.barrier(), place);
  }
}
template <int rank>
inline void tensor_multicast(SharedPlace to, const char* map, const Coordinates<rank>& at,
                             SharedPlace barrier, unsigned ranks, Place place) {
  simt::tensor_load_multicast(to.own, map, at.at, rank, barrier.barrier(),
                              static_cast<std::uint16_t>(ranks), place);
}
template <int rank>
inline void im2col_load(SharedPlace to, const char* map, const Coordinates<rank>& at,
                        SharedPlace barrier, const Coordinates<rank - 2>& offsets, Place place) {
  if (to.rank >= 0) simt::fail("im2col copies into another block of the cluster", place);
  simt::im2col_load(to.own, map, at.at, offsets.at, rank, barrier.barrier(), place);
}
template <int rank>
inline void tensor_store(const char* map, const Coordinates<rank>& at, SharedPlace from,
                         Place place) {
  simt::tensor_store(map, at.at, rank, from.own, place);
}
template <int rank>
inline void tensor_reduce(const char* map, const Coordinates<rank>& at, SharedPlace from,
                          simt::TensorReduction reduction, Place place) {
  simt::tensor_reduce(map, at.at, rank, from.own, reduction, place);
}

// --- clusters ---

/// Returns the .shared::cluster address of the same offset in another block (mapa).
template <class T>
inline unsigned map_rank(T address, unsigned rank, Place place) {
  const SharedPlace at = shared_place(address);
  cuda::cluster_address(at.own, static_cast<int>(rank), place);  // called for its check of the rank
  return (rank + 1) << rank_shift | static_cast<unsigned>(at.own - cuda::shared_base);
}
template <class T>
inline unsigned long long map_rank_generic(T address, unsigned rank, Place place) {
  return reinterpret_cast<unsigned long long>(
      cuda::cluster_address(pointer(address), static_cast<int>(rank), place));
}
template <class T>
inline unsigned rank_of(T address) {
  const SharedPlace at = shared_place(address);
  return static_cast<unsigned>(at.rank >= 0 ? at.rank : simt::cluster_rank());
}

/// Sends one to four registers to another block, whose barrier counts the bytes (st.async).
template <class To, class... T>
inline void send(Place place, SharedPlace to, SharedPlace barrier, const T&... values) {
  const To data[] = {To(values)...};
  simt::cluster_send(to.own, data, barrier.barrier(), to.rank >= 0 ? to.rank : simt::cluster_rank(),
                     place, sizeof(data));
}

// --- products of a warpgroup ---

struct LeftOperand {
  bool in_registers;
  std::uint32_t registers[4];
  unsigned long long matrix;
};
template <class T>
inline LeftOperand left_matrix(T descriptor) {
  return {false, {}, get<unsigned long long>(descriptor)};
}
template <class... T>
inline LeftOperand left_registers(T... four) {
  static_assert(sizeof...(T) == 4);
  return {true, {get<unsigned>(four)...}, 0};
}
/// Translates a matrix descriptor. Its 14-bit addresses, in units of 16 bytes, are relative to the
/// block's own memory in emulated programs; the simulator expects them to include a GPU's reserved
/// shared memory.
inline unsigned long long described(unsigned long long matrix) {
  constexpr unsigned long long field = (1u << 14) - 1;
  const unsigned long long address = (matrix & field) + simt::shared_bytes_reserved / 16;
  return (matrix & ~field) | (address & field);
}
/// Issues a wgmma. The sums may be in any memory; the wait writes them.
template <int n, class Sum, class... Sums>
inline void product(simt::WgmmaType a, simt::WgmmaType b, const LeftOperand& left,
                    unsigned long long right, bool accumulate, int scale_a, int scale_b, int turn_a,
                    int turn_b, Place place, Sum& first, Sums&... others) {
  static_assert(sizeof(Sum) == 4 && ((sizeof(Sums) == 4) && ...) && sizeof...(Sums) + 1 == n / 2);
  void* const places[] = {&first, &others...};
  bool in_a_row = true;
  for (int i = 0; i < n / 2; ++i) in_a_row &= places[i] == reinterpret_cast<char*>(&first) + 4 * i;
  const simt::WgmmaShape shape{a, b, n, turn_a != 0, turn_b != 0, scale_a < 0, scale_b < 0};
  const std::uint32_t* const registers = left.in_registers ? left.registers : nullptr;
  if (in_a_row) {
    simt::wgmma(shape, &first, registers, described(left.matrix), described(right), accumulate,
                place);
  } else {
    simt::wgmma_scattered(shape, places, registers, described(left.matrix), described(right),
                          accumulate, place);
  }
}

// --- the warp ---

/// Elects the lowest lane, as GPUs do (elect.sync).
inline unsigned elect(unsigned mask, bool& chosen, Place place) {
  const unsigned leader = static_cast<unsigned>(__builtin_ctz(simt::ballot(mask, true, place)));
  chosen = leader == static_cast<unsigned>(simt::lane_index());
  return leader;
}

#define RUNG_SPECIAL(name, type, value) \
  inline type special_##name() { return static_cast<type>(value); }
RUNG_SPECIAL(cluster_ctarank, unsigned, simt::cluster_rank())
RUNG_SPECIAL(cluster_nctarank, unsigned, simt::cluster_size())
RUNG_SPECIAL(cluster_ctaid_x, unsigned, blockIdx.x % cuda::cluster_extent().x)
RUNG_SPECIAL(cluster_ctaid_y, unsigned, blockIdx.y % cuda::cluster_extent().y)
RUNG_SPECIAL(cluster_ctaid_z, unsigned, blockIdx.z % cuda::cluster_extent().z)
RUNG_SPECIAL(cluster_nctaid_x, unsigned, cuda::cluster_extent().x)
RUNG_SPECIAL(cluster_nctaid_y, unsigned, cuda::cluster_extent().y)
RUNG_SPECIAL(cluster_nctaid_z, unsigned, cuda::cluster_extent().z)
RUNG_SPECIAL(clusterid_x, unsigned, blockIdx.x / cuda::cluster_extent().x)
RUNG_SPECIAL(clusterid_y, unsigned, blockIdx.y / cuda::cluster_extent().y)
RUNG_SPECIAL(clusterid_z, unsigned, blockIdx.z / cuda::cluster_extent().z)
RUNG_SPECIAL(nclusterid_x, unsigned, gridDim.x / cuda::cluster_extent().x)
RUNG_SPECIAL(nclusterid_y, unsigned, gridDim.y / cuda::cluster_extent().y)
RUNG_SPECIAL(nclusterid_z, unsigned, gridDim.z / cuda::cluster_extent().z)
RUNG_SPECIAL(is_explicit_cluster, bool, simt::cluster_size() > 1)
#undef RUNG_SPECIAL

}  // namespace rung::ptx
