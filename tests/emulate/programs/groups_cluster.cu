// SPDX-License-Identifier: Apache-2.0
// Blocks of a cluster share memory: a histogram spread over them.
#include <cooperative_groups.h>

#include "check.cuh"

namespace cg = cooperative_groups;
__global__ void __cluster_dims__(4, 1, 1) histogram(const int* in, int* out) {
  __shared__ int bins[16];
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x < 16) bins[threadIdx.x] = 0;
  cluster.sync();
  const int v = in[blockIdx.x * blockDim.x + threadIdx.x];
  atomicAdd(cluster.map_shared_rank(bins, v / 16) + v % 16, 1);
  cluster.sync();
  if (threadIdx.x < 16) out[16 * cluster.block_rank() + threadIdx.x] = bins[threadIdx.x];
}

int main() {
  Array<int> in(256), out(64);
  for (int i = 0; i < 256; ++i) in[i] = i * i % 64;
  in.up();
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(4);
  config.blockDim = dim3(64);
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = 4;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  CUDA(cudaLaunchKernelEx(&config, histogram, (const int*)in.device, out.device));
  out.down();
  int expected[64] = {};
  for (int i = 0; i < 256; ++i) ++expected[in[i]];
  for (int i = 0; i < 64; ++i) CHECK(out[i] == expected[i]);
  return ok();
}
