// SPDX-License-Identifier: Apache-2.0
// cudaLaunchKernelEx, with a cluster.
#include <cooperative_groups.h>

#include "check.cuh"

namespace cg = cooperative_groups;

__global__ void fill(int* p, int v) { p[blockIdx.x * blockDim.x + threadIdx.x] = v; }

__global__ void exchange(int* out) {
  __shared__ int mine[32];
  cg::cluster_group cluster = cg::this_cluster();
  mine[threadIdx.x] = static_cast<int>(100 * cluster.block_rank() + threadIdx.x);
  cluster.sync();
  const unsigned other = (cluster.block_rank() + 1) % cluster.num_blocks();
  const int* theirs = cluster.map_shared_rank(mine, other);
  out[blockIdx.x * blockDim.x + threadIdx.x] = theirs[threadIdx.x];
  cluster.sync();
}

int main() {
  Array<int> data(128);
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(4);
  config.blockDim = dim3(32);
  CUDA(cudaLaunchKernelEx(&config, fill, data.device, 9));
  data.down();
  CHECK(data[0] == 9 && data[127] == 9);
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = 2;
  attribute.val.clusterDim.y = 1;
  attribute.val.clusterDim.z = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  CUDA(cudaLaunchKernelEx(&config, exchange, data.device));
  data.down();
  for (int i = 0; i < 128; ++i) CHECK(data[i] == 100 * (1 - i / 32 % 2) + i % 32);
  return ok();
}
