// SPDX-License-Identifier: Apache-2.0
// Cooperative groups larger than a warp: block, grid, cluster.
#pragma once

#include "rung_cuda/integers.h"
#include "rung_cuda/warp.h"

namespace rung::cuda {
unsigned cluster_rank();
dim3 cluster_extent();
void cluster_arrive(Place place);
void cluster_wait(Place place);
void* cluster_address(const void* address, int rank, Place place);
void grid_sync(Place place);

constexpr unsigned linear(const dim3& at, const dim3& extent) {
  return at.x + extent.x * (at.y + extent.y * at.z);
}
inline unsigned thread_rank() { return linear(dim3(threadIdx), blockDim); }
inline unsigned block_size() { return blockDim.x * blockDim.y * blockDim.z; }
inline unsigned long long block_rank() {
  return blockIdx.x + 1ull * gridDim.x * (blockIdx.y + 1ull * gridDim.y * blockIdx.z);
}
inline unsigned long long grid_size() { return 1ull * gridDim.x * gridDim.y * gridDim.z; }
/// Returns a mask of the lanes that exist in the calling warp.
inline unsigned warp_lanes() {
  const unsigned first = thread_rank() & ~31u;
  const unsigned left = block_size() - first;
  return left >= 32 ? 0xffffffffu : (1u << left) - 1;
}
inline unsigned lanes_below(int lane) { return (1u << lane) - 1; }
}  // namespace rung::cuda

namespace cooperative_groups {

using RungPlace = ::RungPlace;

/// Group whose kind is determined at run time: a block, or lanes of a warp.
class thread_group {
 public:
  thread_group() = default;
  explicit thread_group(unsigned lanes, bool whole_block) : lanes_(lanes), block_(whole_block) {}
  unsigned long long size() const {
    return block_ ? rung::cuda::block_size() : static_cast<unsigned>(__popc(lanes_));
  }
  unsigned long long num_threads() const { return size(); }
  unsigned long long thread_rank() const {
    return block_ ? rung::cuda::thread_rank()
                  : static_cast<unsigned>(
                        __popc(lanes_ & rung::cuda::lanes_below(rung::simt::lane_index())));
  }
  bool is_valid() const { return true; }
  void sync(RungPlace place = RungPlace::current()) const {
    if (block_) {
      __syncthreads(place);
    } else {
      __syncwarp(lanes_, place);
    }
  }
  unsigned rung_lanes() const { return lanes_; }
  bool rung_block() const { return block_; }

 protected:
  unsigned lanes_ = 0;
  bool block_ = false;
};

class thread_block : public thread_group {
 public:
  thread_block() : thread_group(0, true) {}
  static void sync(RungPlace place = RungPlace::current()) { __syncthreads(place); }
  static unsigned size() { return rung::cuda::block_size(); }
  static unsigned num_threads() { return rung::cuda::block_size(); }
  static unsigned thread_rank() { return rung::cuda::thread_rank(); }
  static dim3 group_index() { return dim3(blockIdx); }
  static dim3 thread_index() { return dim3(threadIdx); }
  static dim3 group_dim() { return blockDim; }
  static dim3 dim_threads() { return blockDim; }
  struct arrival_token {};
  arrival_token barrier_arrive() const { return {}; }
  void barrier_wait(arrival_token&&, RungPlace place = RungPlace::current()) const {
    __syncthreads(place);
  }
};
inline thread_block this_thread_block() { return {}; }

class grid_group {
 public:
  static bool is_valid() { return true; }
  static void sync(RungPlace place = RungPlace::current()) { rung::cuda::grid_sync(place); }
  static unsigned long long size() { return rung::cuda::grid_size() * rung::cuda::block_size(); }
  static unsigned long long num_threads() { return size(); }
  static unsigned long long thread_rank() {
    return rung::cuda::block_rank() * rung::cuda::block_size() + rung::cuda::thread_rank();
  }
  static unsigned long long num_blocks() { return rung::cuda::grid_size(); }
  static unsigned long long block_rank() { return rung::cuda::block_rank(); }
  static dim3 block_index() { return dim3(blockIdx); }
  static dim3 group_dim() { return gridDim; }
  static dim3 dim_blocks() { return gridDim; }
  struct arrival_token {};
  arrival_token barrier_arrive() const { return {}; }
  void barrier_wait(arrival_token&&, RungPlace place = RungPlace::current()) const {
    rung::cuda::grid_sync(place);
  }
};
inline grid_group this_grid() { return {}; }

class cluster_group {
 public:
  struct arrival_token {};
  static void sync(RungPlace place = RungPlace::current()) {
    rung::cuda::cluster_arrive(place);
    rung::cuda::cluster_wait(place);
  }
  static arrival_token barrier_arrive(RungPlace place = RungPlace::current()) {
    rung::cuda::cluster_arrive(place);
    return {};
  }
  static void barrier_wait(arrival_token&& = {}, RungPlace place = RungPlace::current()) {
    rung::cuda::cluster_wait(place);
  }
  static unsigned block_rank() { return rung::cuda::cluster_rank(); }
  static unsigned num_blocks() {
    const dim3 extent = rung::cuda::cluster_extent();
    return extent.x * extent.y * extent.z;
  }
  static dim3 dim_blocks() { return rung::cuda::cluster_extent(); }
  static dim3 block_index() {
    const dim3 extent = rung::cuda::cluster_extent();
    return dim3(blockIdx.x % extent.x, blockIdx.y % extent.y, blockIdx.z % extent.z);
  }
  static unsigned num_threads() { return num_blocks() * rung::cuda::block_size(); }
  static unsigned size() { return num_threads(); }
  static unsigned thread_rank() {
    return block_rank() * rung::cuda::block_size() + rung::cuda::thread_rank();
  }
  template <class T>
  static T* map_shared_rank(T* address, int rank, RungPlace place = RungPlace::current()) {
    return static_cast<T*>(rung::cuda::cluster_address(address, rank, place));
  }
};
inline cluster_group this_cluster() { return {}; }

template <class Group>
inline void sync(const Group& group, RungPlace place = RungPlace::current()) {
  group.sync(place);
}
template <class Group>
inline auto thread_rank(const Group& group) {
  return group.thread_rank();
}
template <class Group>
inline auto group_size(const Group& group) {
  return group.size();
}

}  // namespace cooperative_groups
