// SPDX-License-Identifier: Apache-2.0
// A cluster's barrier before another block's shared memory is read.
#include <cooperative_groups.h>

#include "../programs/check.cuh"

__global__ void neighbors(int* out) {
  __shared__ int kept[32];
  auto cluster = cooperative_groups::this_cluster();
  kept[threadIdx.x] = 100 * blockIdx.x + threadIdx.x;  // expect: race
#ifdef BUG
  __syncthreads();
#else
  cluster.sync();
#endif
  int* theirs = cluster.map_shared_rank(kept, cluster.block_rank() ^ 1);
  out[32 * blockIdx.x + threadIdx.x] = theirs[threadIdx.x];  // expect: race
  cluster.sync();
}

int main() {
  Array<int> out(64);
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = 2;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(2);
  config.blockDim = dim3(32);
  config.attrs = &attribute;
  config.numAttrs = 1;
  CUDA(cudaLaunchKernelEx(&config, neighbors, out.device));
  return ok();
}
