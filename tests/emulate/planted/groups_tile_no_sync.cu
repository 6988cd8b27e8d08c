// SPDX-License-Identifier: Apache-2.0
// The threads of a tile exchange by shared memory, and meet before they read.
#include <cooperative_groups.h>

#include "../programs/check.cuh"

namespace cg = cooperative_groups;

__global__ void mirrored(const int* in, int* out) {
  __shared__ int kept[64];
  const auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  const int t = threadIdx.x, first = t - static_cast<int>(tile.thread_rank());
  kept[t] = in[t];  // expect: race
#ifndef BUG
  tile.sync();
#endif
  out[t] = kept[first + 7 - tile.thread_rank()];  // expect: race
}

int main() {
  Array<int> in(64), out(64);
  in.up();
  mirrored<<<1, 64>>>(in.device, out.device);
  return ok();
}
