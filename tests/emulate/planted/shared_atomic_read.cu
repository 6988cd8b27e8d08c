// SPDX-License-Identifier: Apache-2.0
// The sum of atomic additions is read behind a barrier.
#include "../programs/check.cuh"

__global__ void sum(const int* in, int* out) {
  __shared__ int total;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  atomicAdd(&total, in[threadIdx.x]);  // expect: race
#ifndef BUG
  __syncthreads();
#endif
  out[threadIdx.x] = total;  // expect: race
}

int main() {
  Array<int> in(64), out(64);
  for (int i = 0; i < 64; ++i) in[i] = i;
  in.up();
  sum<<<1, 64>>>(in.device, out.device);
  return ok();
}
