// SPDX-License-Identifier: Apache-2.0
// All-reduce over the blocks of a cluster that share a row: every warp sends its value to all
// blocks, whose mbarriers count the bytes. Compute capability 9.0.
//
//   auto& packets = shared<ClusterPackets<float>>();
//   const ClusterPart part(rows.length, lead, packs, width);  // this block's elements
//   ... issue the loads of [part.first, part.first + part.length) ...
//   cluster_begin(packets);                                   // while they are in flight
//   sum = cluster_all_reduce(mine, RowSum<float>{}, packets);
//
// Shapes   one row per cluster of up to 16 blocks, each of whole warps; a value of up to 16 bytes.
//          One reduction per launch.
// Owners   warp w of block b writes packets.of_warp[b * warps + w] in every block.
// Cost     one 16-byte st.async per warp and block, no reply. Blocks wait for the start of the
//          others only before they send. No barrier at the end: once all values have arrived, no
//          other block writes to this one.
#pragma once

#include <cstdint>

#include "rung/device/collectives.hpp"
#include "rung/device/ptx/cluster.hpp"
#include "rung/device/ptx/cluster_send.hpp"
#include "rung/device/ptx/mbarrier.hpp"

namespace rung::inline RUNG_TARGET {

inline constexpr int max_blocks_per_cluster = 16;

/// The value that a warp sends to each block of the cluster.
template <class Value>
struct alignas(16) ClusterPacket {
  static_assert(sizeof(Value) < 16);
  Value value;
  unsigned unused[(16 - sizeof(Value)) / sizeof(unsigned)];
};

/// Receive buffer of a block: one packet per warp of the cluster. Aligned, so that data after it in
/// shared memory begin at a multiple of 128 bytes.
template <class Value>
struct alignas(128) ClusterPackets {
  ClusterPacket<Value> of_warp[max_blocks_per_cluster * 1024 / warp_size];
  ptx::MemoryBarrier met;
};

/// This block's part of a row, from an aligned address on: `packs` packs of `width` elements per
/// block.
struct ClusterPart {
  int first = 0;
  int length = 0;
  int lead = 0;
  __device__ __forceinline__ ClusterPart(std::int64_t row_length, int row_lead, int packs,
                                         int width) {
    const int begin = ptx::cluster_rank() * packs * width - row_lead;
    const int end = begin + packs * width;
    const int all = static_cast<int>(row_length);
    first = begin > 0 ? begin : 0;
    lead = begin > 0 ? 0 : row_lead;
    length = end < all ? end - first : all > first ? all - first : 0;
  }
};

/// Initializes the receive buffer and signals the cluster that this block can receive. Called after
/// the loads have been issued.
template <class Value>
__device__ __forceinline__ void cluster_begin(ClusterPackets<Value>& packets) {
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(packets.met, 1);
    ptx::mbarrier_fence_init();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned warps = static_cast<unsigned>(ptx::cluster_size()) * (blockDim.x / warp_size);
    ptx::mbarrier_arrive_expect(packets.met,
                                warps * static_cast<unsigned>(sizeof(ClusterPacket<Value>)));
  }
  ptx::cluster_arrive_begun();
}

/// Returns the combination of the values of all threads of the cluster; `combine` as for
/// row_all_reduce().
template <class Value, class Combine>
__device__ __forceinline__ Value cluster_all_reduce(const Value& mine, const Combine& combine,
                                                    ClusterPackets<Value>& packets) {
  const ClusterPacket<Value> of_warp{combine(mine, warp_size), {}};
  const int warps = static_cast<int>(blockDim.x) / warp_size;
  const int warp = static_cast<int>(threadIdx.x) / warp_size;
  const int lane = lane_of_thread();
  const int blocks = ptx::cluster_size();
  ptx::cluster_wait_begun();
  if (lane < blocks) {
    ptx::cluster_send(packets.of_warp[ptx::cluster_rank() * warps + warp], of_warp, packets.met,
                      lane);
  }
  ptx::mbarrier_wait_cluster(packets.met, 0);
  Value all = combine.identity();
#pragma unroll 1
  for (int i = lane; i < blocks * warps; i += warp_size) {
    all = combine(all, packets.of_warp[i].value);
  }
  return combine(all, warp_size);
}

}  // namespace rung::inline RUNG_TARGET
