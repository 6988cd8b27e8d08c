// SPDX-License-Identifier: Apache-2.0
// A barrier that all threads of the block reach.
#include "../programs/check.cuh"

__global__ void halves(int* out) {
  const int t = threadIdx.x;
#ifdef BUG
  if (t < 16) {
    __syncthreads();  // expect: barrier
    out[t] = 1;
  } else {
    out[t] = __shfl_sync(0xffff0000u, t, 20);
    __syncthreads();  // expect: barrier
  }
#else
  if (t >= 16) out[t] = __shfl_sync(0xffff0000u, t, 20);
  __syncthreads();
  if (t < 16) out[t] = 1;
#endif
}

int main() {
  Array<int> out(32);
  halves<<<1, 32>>>(out.device);
  cudaDeviceSynchronize();
  return ok();
}
