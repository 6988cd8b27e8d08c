// SPDX-License-Identifier: Apache-2.0
// The occupancy functions, with static and dynamic shared memory.
#include "check.cuh"

__global__ void plain(float* p) { p[threadIdx.x] = 1; }
__global__ void with_static(float* p) {
  __shared__ float kept[8192];
  kept[threadIdx.x] = p[threadIdx.x];
  __syncthreads();
  p[threadIdx.x] = kept[blockDim.x - 1 - threadIdx.x];
}

int main() {
  cudaDeviceProp device;
  CUDA(cudaGetDeviceProperties(&device, 0));
  int blocks = 0;
  CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, plain, 256, 0));
  CHECK(blocks * 256 <= device.maxThreadsPerMultiProcessor && blocks >= 4);
  int crowded = 0;
  CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&crowded, with_static, 256, 0));
  CHECK(crowded >= 1 && crowded <= static_cast<int>(device.sharedMemPerMultiprocessor / 32768));
  cudaFuncAttributes attributes;
  CUDA(cudaFuncGetAttributes(&attributes, with_static));
  CHECK(attributes.sharedSizeBytes == 32768 && attributes.maxThreadsPerBlock == 1024);
  int grid = 0, block = 0;
  CUDA(cudaOccupancyMaxPotentialBlockSize(&grid, &block, plain, 0, 0));
  CHECK(block >= 32 && block <= 1024 && grid >= device.multiProcessorCount);
  Array<float> data(1024);
  plain<<<grid, block>>>(data.device);
  with_static<<<1, 64>>>(data.device);
  data.down();
  CHECK(data[0] == 1);
  return ok();
}
