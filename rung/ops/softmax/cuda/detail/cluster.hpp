// SPDX-License-Identifier: Apache-2.0
// Rows of softmax in clusters: a block's part of one, and what the blocks tell each other.
#pragma once

#include "rung/device/ptx_cluster.hpp"
#include "rung/device/ptx_cluster_send.hpp"
#include "rung/device/ptx_mbarrier.hpp"
#include "rung/ops/softmax/cuda/detail/registers.hpp"

namespace rung::softmax_cuda::inline RUNG_TARGET {

inline constexpr int most_blocks_a_cluster = 16;

/// What a warp sends to each block.
struct alignas(16) Sent {
  Total<float> total;
  float unused[2];
};
struct alignas(128) ClusterShared {
  Sent of_warp[most_blocks_a_cluster * most_threads / warp_size];
  ptx::MemoryBarrier met;
  [[nodiscard]] __device__ __forceinline__ Words* stage() {
    return reinterpret_cast<Words*>(this + 1);
  }
};

/// This block's part of a row, from an aligned address on.
struct Part {
  int first = 0;
  int length = 0;
  int lead = 0;
  __device__ __forceinline__ Part(std::int64_t row_length, int row_lead, int packs, int width) {
    const int begin = ptx::cluster_rank() * packs * width - row_lead;
    const int end = begin + packs * width;
    const int all = static_cast<int>(row_length);
    first = begin > 0 ? begin : 0;
    lead = begin > 0 ? 0 : row_lead;
    length = end < all ? end - first : all > first ? all - first : 0;
  }
};

/// Tells the cluster's blocks that this one has begun and may be written to. After its loads.
__device__ __forceinline__ void begin(ClusterShared& memory) {
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(memory.met, 1);
    ptx::mbarrier_fence_init();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned warps = static_cast<unsigned>(ptx::cluster_size()) * (blockDim.x / warp_size);
    ptx::mbarrier_arrive_expect(memory.met, warps * static_cast<unsigned>(sizeof(Sent)));
  }
  ptx::cluster_arrive_begun();
}

/// The row's total, from each thread's: every warp tells all blocks.
template <class Merge>
__device__ __forceinline__ Total<float> cluster_total(const Total<float>& mine, const Merge& merge,
                                                      ClusterShared& memory) {
  const Sent of_warp{merge(mine, warp_size), {}};
  const int warps = static_cast<int>(blockDim.x) / warp_size;
  const int warp = static_cast<int>(threadIdx.x) / warp_size;
  const int lane = lane_of_thread();
  const int blocks = ptx::cluster_size();
  ptx::cluster_wait_begun();
  if (lane < blocks) {
    ptx::cluster_send(memory.of_warp[ptx::cluster_rank() * warps + warp], of_warp, memory.met,
                      lane);
  }
  ptx::mbarrier_wait_cluster(memory.met, 0);
  Total<float> all = {no_maximum<float>, 0};
#pragma unroll 1
  for (int i = lane; i < blocks * warps; i += warp_size) all = merge(all, memory.of_warp[i].total);
  return merge(all, warp_size);
}

}  // namespace rung::softmax_cuda::inline RUNG_TARGET
