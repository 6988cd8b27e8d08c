// SPDX-License-Identifier: Apache-2.0
// A block of a cluster does not end while another one may read its shared memory, be it by a
// pointer that was mapped long before.
#include <cooperative_groups.h>

#include "../programs/check.cuh"

__global__ void __cluster_dims__(2, 1, 1) neighbors(int* out) {
  __shared__ int kept[32];
  auto cluster = cooperative_groups::this_cluster();
  const int* theirs = cluster.map_shared_rank(kept, cluster.block_rank() ^ 1);
  kept[threadIdx.x] = 100 * blockIdx.x + threadIdx.x;
  cluster.sync();
  out[32 * blockIdx.x + threadIdx.x] = theirs[threadIdx.x];  // expect: race
#ifndef BUG
  cluster.sync();
#endif
}

int main() {
  Array<int> out(64);
  neighbors<<<2, 32>>>(out.device);
  return ok();
}
