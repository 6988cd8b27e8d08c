// SPDX-License-Identifier: Apache-2.0
// Dynamic shared memory for all threads of the block.
#include "../programs/check.cuh"

__global__ void reverse(int* out) {
  extern __shared__ int kept[];
  kept[threadIdx.x] = threadIdx.x;  // expect: out_of_bounds
  __syncthreads();
  if (threadIdx.x < 32) out[threadIdx.x] = kept[threadIdx.x];  // expect: out_of_bounds
}

int main() {
  Array<int> out(64);
#ifdef BUG
  reverse<<<1, 64, 64>>>(out.device);
#else
  reverse<<<1, 64, 64 * sizeof(int)>>>(out.device);
#endif
  return ok();
}
