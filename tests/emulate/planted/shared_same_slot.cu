// SPDX-License-Identifier: Apache-2.0
// One thread alone writes what all share.
#include "../programs/check.cuh"

__global__ void same(int* out) {
  __shared__ int slot;
#ifndef BUG
  if (threadIdx.x == 3)
#endif
    slot = threadIdx.x / 32;  // expect: race
  __syncthreads();
  out[threadIdx.x] = slot;
}

int main() {
  Array<int> out(64);
  same<<<1, 64>>>(out.device);
  return ok();
}
