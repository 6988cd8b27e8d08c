// SPDX-License-Identifier: Apache-2.0
// __launch_bounds__: blocks and clusters that are larger than it says are refused. The errors are
// an H200's.
#include "check.cuh"

template <int N>
__global__ void __launch_bounds__(N * 2, 1 + 1) of_template(int* p) {
  p[threadIdx.x] = N;
}
static __launch_bounds__(64) __global__ void in_front(int* p) { p[threadIdx.x] = 1; }
__global__ void __launch_bounds__(96) declared(int* p);
__global__ void declared(int* p) { p[threadIdx.x] = 2; }
__global__ void __launch_bounds__(1024, 1, 2) small_clusters(int* p) { p[threadIdx.x] = 3; }
__global__ void unbounded(int* p) { p[threadIdx.x] = 4; }

template <class Kernel>
cudaError_t in_clusters(Kernel kernel, unsigned grid, unsigned cluster, int* p) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = cluster;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(grid);
  config.blockDim = dim3(32);
  config.attrs = &attribute;
  config.numAttrs = 1;
  const cudaError_t error = cudaLaunchKernelEx(&config, kernel, p);
  CHECK(cudaGetLastError() == error);
  return error;
}

int main() {
  Array<int> p(1024);
  of_template<32><<<1, 64>>>(p.device);
  CUDA(cudaGetLastError());
  of_template<32><<<1, 65>>>(p.device);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  of_template<64><<<1, 65>>>(p.device);
  CUDA(cudaGetLastError());
  in_front<<<1, dim3(8, 8)>>>(p.device);
  CUDA(cudaGetLastError());
  in_front<<<1, dim3(8, 8, 2)>>>(p.device);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  declared<<<1, 97>>>(p.device);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  int* device = p.device;
  void* arguments[] = {&device};
  CHECK(cudaLaunchKernel(in_front, dim3(1), dim3(128), arguments, 0, 0) == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  p.down();
  // Nothing of those refused.
  CHECK(p[7] == 1 && p[8] == 64 && p[64] == 64 && p[65] == 0);
  // One place may launch any of them.
  void (*const all[])(int*) = {in_front, declared, unbounded, in_front};
  const cudaError_t expected[] = {cudaErrorInvalidValue, cudaErrorInvalidValue, cudaSuccess,
                                  cudaErrorInvalidValue};
  for (int i = 0; i < 4; ++i) {
    all[i]<<<1, 100>>>(p.device);
    CHECK(cudaGetLastError() == expected[i]);
  }
  cudaFuncAttributes attributes;
  CUDA(cudaFuncGetAttributes(&attributes, in_front));
  CHECK(attributes.maxThreadsPerBlock == 64);
  CUDA(cudaFuncGetAttributes(&attributes, unbounded));
  CHECK(attributes.maxThreadsPerBlock == 1024);
  int grid = 0, block = 0;
  CUDA(cudaOccupancyMaxPotentialBlockSize(&grid, &block, in_front, 0, 0));
  CHECK(block == 64);
  CUDA(in_clusters(small_clusters, 4, 2, p.device));
  CHECK(in_clusters(small_clusters, 4, 4, p.device) == cudaErrorInvalidClusterSize);
  CUDA(in_clusters(unbounded, 8, 8, p.device));
  CHECK(in_clusters(unbounded, 16, 16, p.device) == cudaErrorInvalidClusterSize);
  CHECK(in_clusters(unbounded, 6, 4, p.device) == cudaErrorInvalidClusterSize);
  CUDA(cudaFuncSetAttribute(unbounded, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  CUDA(in_clusters(unbounded, 16, 16, p.device));
  return ok();
}
