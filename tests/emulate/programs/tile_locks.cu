// SPDX-License-Identifier: Apache-2.0
// The leaders of a warp's tiles take turns with a lock; the others of a tile hear by their leader
// of what the holders before have done.
#include <cooperative_groups.h>

#include "check.cuh"

namespace cg = cooperative_groups;

__global__ void add(int* lock, int* sums) {
  const auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  if (tile.thread_rank() == 0) {
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    __threadfence();
  }
  tile.sync();
  sums[tile.thread_rank()] += 1;
  if (tile.thread_rank() == 7) sums[8] = sums[8] * 2 + 1;
  tile.sync();
  if (tile.thread_rank() == 0) {
    sums[9] += 1;
    __threadfence();
    atomicExch(lock, 0);
  }
  // The last that a holder has done its successor's tile hears of by their own leader.
  tile.sync();
}

__global__ void look(int* lock, int* last, int* out) {
  const auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  const int leader = threadIdx.x / 8;
  if (tile.thread_rank() == 0) {
    while (atomicAdd(lock, 0) != leader) {
    }
  }
  tile.sync();
  out[threadIdx.x] = last[tile.thread_rank()];
  tile.sync();
  if (tile.thread_rank() == 0) {
    for (int i = 0; i < 8; ++i) last[i] = leader + 1;
    __threadfence();
    atomicExch(lock, leader + 1);
  }
}

int main() {
  Array<int> lock(1), sums(10), turn(1), last(8), out(64);
  add<<<2, 64>>>(lock.device, sums.device);
  sums.down();
  CHECK(sums[0] == 16 && sums[7] == 16 && sums[8] == 65535 && sums[9] == 16);
  look<<<1, 64>>>(turn.device, last.device, out.device);
  out.down();
  for (int i = 0; i < 64; ++i) CHECK(out[i] == i / 8);
  return ok();
}
