// SPDX-License-Identifier: Apache-2.0
// Sizes of blocks that the occupancy calculator proposes.
#include "check.cuh"

__global__ void plain(float* p) { p[threadIdx.x] = 0; }
__global__ void much_shared(float* p) {
  __shared__ float kept[8192];
  kept[threadIdx.x] = 1;
  __syncthreads();
  p[threadIdx.x] = kept[threadIdx.x ^ 1];
}
static size_t shared_of(int block) { return block * 64; }

int main() {
  int blocks = 0, size = 0, grid = 0;
  CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, plain, 256, 0));
  cudaDeviceProp p;
  CUDA(cudaGetDeviceProperties(&p, 0));
  CHECK(blocks * 256 == p.maxThreadsPerMultiProcessor);
  CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, much_shared, 32, 0));
  CHECK(blocks == static_cast<int>(p.sharedMemPerMultiprocessor / (32768 + 1024)));
  CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, plain, 32, 100 * 1024));
  CHECK(blocks == 0);
  CUDA(cudaOccupancyMaxPotentialBlockSize(&grid, &size, plain, 0, 0));
  CHECK(size >= 128 && size <= 1024 && size % 32 == 0 && grid >= p.multiProcessorCount);
  CUDA(cudaOccupancyMaxPotentialBlockSizeVariableSMem(&grid, &size, plain, shared_of, 512));
  CHECK(size <= 512 && size % 32 == 0);
  size_t bytes = 0;
  CUDA(cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, plain, 2, 128));
  CHECK(bytes > 0 && 2 * bytes <= p.sharedMemPerMultiprocessor);
  return ok();
}
