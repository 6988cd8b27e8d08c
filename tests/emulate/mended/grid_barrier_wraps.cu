// SPDX-License-Identifier: Apache-2.0
// A barrier of the grid by atomicInc(), which goes back to 0 by itself.
#include "check.cuh"

__device__ unsigned count;
__device__ unsigned generation;

__device__ void meet() {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
#ifdef BUG
    atomicInc(&count, gridDim.x - 1);
    while (atomicAdd(&count, 0) != 0) {  // expect: deadlock
    }
#else
    const unsigned before = atomicAdd(&generation, 0);
    if (atomicInc(&count, gridDim.x - 1) == gridDim.x - 1) {
      atomicAdd(&generation, 1);
    } else {
      while (atomicAdd(&generation, 0) == before) {
      }
    }
#endif
    __threadfence();
  }
  __syncthreads();
}
__global__ void steps(int* sums) {
  for (int k = 0; k < 3; k++) {
    if (threadIdx.x == 0) sums[blockIdx.x] += k;
    meet();
  }
}

int main() {
  Array<int> sums(4);
  steps<<<4, 32>>>(sums.device);
  cudaDeviceSynchronize();
#ifndef BUG
  sums.down();
  for (int b = 0; b < 4; ++b) CHECK(sums[b] == 3);
#endif
  std::printf("OK\n");
  return 0;
}
// says: generation counter
// says: this_grid().sync()
