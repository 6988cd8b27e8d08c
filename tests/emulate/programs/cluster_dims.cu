// SPDX-License-Identifier: Apache-2.0
// __cluster_dims__: <<<>>> launches such a kernel in clusters. The errors are an H200's.
#include <cooperative_groups.h>

#include "check.cuh"

namespace cg = cooperative_groups;

/// Each block gets the value of its neighbor in the cluster.
template <int N>
__global__ void __cluster_dims__(N, 1, 1) rotate(int* out) {
  __shared__ int own;
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) own = 10 * static_cast<int>(blockIdx.x);
  cluster.sync();
  const unsigned next = (cluster.block_rank() + 1) % cluster.num_blocks();
  if (threadIdx.x == 0) out[blockIdx.x] = *cluster.map_shared_rank(&own, next);
  cluster.sync();
}
__global__ void __launch_bounds__(64) __cluster_dims__(2, 2) plane(int* out) {
  const cg::cluster_group cluster = cg::this_cluster();
  const dim3 at = cluster.block_index(), extent = cluster.dim_blocks();
  if (threadIdx.x == 0) {
    out[blockIdx.x + gridDim.x * blockIdx.y] =
        static_cast<int>(100 * extent.x + 10 * at.y + at.x + 1000 * cluster.num_blocks());
  }
}
__global__ void apart(int* out) {
  if (threadIdx.x == 0) out[blockIdx.x] = static_cast<int>(cg::this_cluster().num_blocks());
}

int main() {
  Array<int> out(16);
  for (int round = 0; round < 2; ++round) {
    CUDA(cudaMemset(out.device, 0, 64));
    rotate<4><<<8, 32>>>(out.device);
    CUDA(cudaGetLastError());
    out.down();
    for (int i = 0; i < 8; ++i) CHECK(out[i] == 10 * (i / 4 * 4 + (i + 1) % 4));
  }
  rotate<2><<<8, 32>>>(out.device);
  out.down();
  for (int i = 0; i < 8; ++i) CHECK(out[i] == 10 * (i ^ 1));
  plane<<<dim3(4, 2), 32>>>(out.device);
  CUDA(cudaGetLastError());
  out.down();
  for (int y = 0; y < 2; ++y) {
    for (int x = 0; x < 4; ++x) CHECK(out[x + 4 * y] == 4200 + 10 * y + x % 2);
  }
  rotate<4><<<6, 32>>>(out.device);
  CHECK(cudaGetLastError() == cudaErrorInvalidClusterSize);
  plane<<<dim3(4, 3), 32>>>(out.device);
  CHECK(cudaGetLastError() == cudaErrorInvalidClusterSize);
  plane<<<dim3(4, 2), 128>>>(out.device);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  // One place may launch any of them, whatever it launched before.
  void (*const all[])(int*) = {rotate<2>, apart, rotate<4>, apart};
  const int blocks[] = {6, 7, 8, 3};
  for (int k = 0; k < 4; ++k) {
    all[k]<<<blocks[k], 32>>>(out.device);
    CUDA(cudaGetLastError());
    out.down();
    CHECK(out[0] == (k == 0 || k == 2 ? 10 : 1));
  }
  cudaFuncAttributes attributes;
  CUDA(cudaFuncGetAttributes(&attributes, plane));
  CHECK(attributes.clusterDimMustBeSet == 1 && attributes.requiredClusterWidth == 2 &&
        attributes.requiredClusterHeight == 2);
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = 2;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(8);
  config.blockDim = dim3(32);
  CUDA(cudaLaunchKernelEx(&config, rotate<4>, out.device));
  config.attrs = &attribute;
  config.numAttrs = 1;
  CHECK(cudaLaunchKernelEx(&config, rotate<4>, out.device) == cudaErrorInvalidClusterSize);
  cudaGetLastError();
  return ok();
}
