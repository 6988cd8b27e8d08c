// SPDX-License-Identifier: Apache-2.0
// A semaphore between blocks: the producer sets a flag by atomicExch without a fence.
#include "check.cuh"

__global__ void hand_over(int* data, int* ready, int* out) {
  if (blockIdx.x == 0) {
    data[threadIdx.x] = 10 + threadIdx.x;  // expect: race
    __syncthreads();
    if (threadIdx.x == 0) {
#ifndef BUG
      __threadfence();
#endif
      atomicExch(ready, 1);
    }
  } else {
    if (threadIdx.x == 0) {
      while (atomicAdd(ready, 0) == 0) {
      }
      __threadfence();
    }
    __syncthreads();
    out[threadIdx.x] = data[63 - threadIdx.x];  // expect: race
  }
}

int main() {
  Array<int> data(64), ready(1), out(64);
  hand_over<<<2, 64>>>(data.device, ready.device, out.device);
  out.down();
  for (int i = 0; i < 64; ++i) CHECK(out[i] == 73 - i);
  return ok();
}
// says: __threadfence()
// says: which updates ready
// never: frees the lock
