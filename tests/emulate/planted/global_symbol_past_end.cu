// SPDX-License-Identifier: Apache-2.0
// A __device__ array has an end too.
#include "../programs/check.cuh"

__device__ int table[32];
__global__ void fill(int shift) {
  table[threadIdx.x + shift] = 1;  // expect: out_of_bounds
}

int main() {
#ifdef BUG
  fill<<<1, 32>>>(1);
#else
  fill<<<1, 32>>>(0);
#endif
  return ok();
}
