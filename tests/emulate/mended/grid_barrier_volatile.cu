// SPDX-License-Identifier: Apache-2.0
// A barrier of the grid that counts to the number of blocks and is reset by the last one.
#include "check.cuh"

__device__ volatile int arrived, generation;

__device__ void meet() {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
#ifdef BUG
    if (atomicAdd((int*)&arrived, 1) == gridDim.x - 1) arrived = 0;
    while (arrived != 0) {  // expect: deadlock
    }
#else
    const int before = generation;
    if (atomicAdd((int*)&arrived, 1) == gridDim.x - 1) {
      arrived = 0;
      __threadfence();
      generation = before + 1;
    } else {
      while (generation == before) {
      }
    }
#endif
    __threadfence();
  }
  __syncthreads();
}
__global__ void steps(int* sums, int count) {
  for (int k = 0; k < count; k++) {
    if (threadIdx.x == 0) sums[blockIdx.x] += k;
    meet();
  }
}

int main() {
  Array<int> sums(8);
  steps<<<8, 64>>>(sums.device, 5);
  cudaDeviceSynchronize();
#ifndef BUG
  sums.down();
  for (int b = 0; b < 8; ++b) CHECK(sums[b] == 10);
#endif
  std::printf("OK\n");
  return 0;
}
// says: generation counter
// says: line 12 sets arrived back to 0
