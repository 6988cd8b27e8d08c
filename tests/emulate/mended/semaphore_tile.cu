// SPDX-License-Identifier: Apache-2.0
// Blocks add to one tile, one after another: all threads write, one updates the volatile semaphore.
#include "check.cuh"

__global__ void add(float* tile, volatile int* semaphore) {
  const int t = threadIdx.x;
  if (t == 0) {
    while (*semaphore != blockIdx.x) {
    }
#ifndef BUG
    __threadfence();
#endif
  }
  __syncthreads();
  tile[t] = tile[t] + t * (blockIdx.x + 1);  // expect: race
#ifndef BUG
  __threadfence();
#endif
  __syncthreads();
  if (t == 0) *semaphore = blockIdx.x + 1;
}

int main() {
  Array<float> tile(64);
  Array<int> semaphore(1);
  add<<<4, 64>>>(tile.device, semaphore.device);
  tile.down();
  for (int t = 0; t < 64; ++t) CHECK(tile[t] == 10 * t);
  return ok();
}
// says: __threadfence()
// never: atomicAdd
