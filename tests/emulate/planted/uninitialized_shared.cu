// SPDX-License-Identifier: Apache-2.0
// All of a shared array is written.
#include "../programs/check.cuh"

__global__ void sum(int* out) {
  __shared__ int kept[64];
#ifdef BUG
  if (threadIdx.x < 60)
#endif
    kept[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = kept[63 - threadIdx.x];  // expect: uninitialized
}

int main() {
  Array<int> out(64);
  sum<<<1, 64>>>(out.device);
  return ok();
}
