// SPDX-License-Identifier: Apache-2.0
// Two warps at two barriers.
#include "../programs/check.cuh"

__global__ void roles(int* out) {
  if (threadIdx.x < 32) {
    out[threadIdx.x] = 1;
#ifdef BUG
    __syncthreads();  // expect: barrier
#endif
  } else {
    out[threadIdx.x] = 2;
#ifdef BUG
    __syncthreads();  // expect: barrier
#endif
  }
#ifndef BUG
  __syncthreads();
#endif
  out[threadIdx.x] += 1;
}

int main() {
  Array<int> out(64);
  roles<<<1, 64>>>(out.device);
  cudaDeviceSynchronize();
  return ok();
}
