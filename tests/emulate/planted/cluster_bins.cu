// SPDX-License-Identifier: Apache-2.0
// A block whose histogram in shared memory others add to stays until they are done.
#include <cooperative_groups.h>

#include "../programs/check.cuh"
namespace cg = cooperative_groups;

__global__ void __cluster_dims__(4, 1, 1) count(const int* in, int* out) {
  __shared__ int bins[8];
  auto cluster = cg::this_cluster();
  const int t = threadIdx.x;
  if (t < 8) bins[t] = 0;
  cluster.sync();
  int* first = cluster.map_shared_rank(bins, 0);
  atomicAdd(&first[in[32 * blockIdx.x + t] % 8], 1);  // expect: race
#ifndef BUG
  cluster.sync();
#else
  __syncthreads();
#endif
  if (cluster.block_rank() == 0 && t < 8) out[t] = bins[t];  // expect: race
}

int main() {
  Array<int> in(128), out(8);
  for (int i = 0; i < 128; ++i) in[i] = i;
  in.up();
  count<<<4, 32>>>(in.device, out.device);
#ifndef BUG
  out.down();
  CHECK(out[3] == 16);
#endif
  return ok();
}
