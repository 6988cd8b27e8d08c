// SPDX-License-Identifier: Apache-2.0
// Bins of shared memory start from zero.
#include "../programs/check.cuh"

__global__ void count(const int* in, int* out) {
  __shared__ int bins[4];
  const int t = threadIdx.x;
#ifndef BUG
  if (t < 4) bins[t] = 0;
#endif
  __syncthreads();
  atomicAdd(&bins[in[t]], 1);  // expect: uninitialized
  __syncthreads();
  if (t < 4) out[t] = bins[t];
}

int main() {
  Array<int> in(32), out(4);
  for (int i = 0; i < 32; ++i) in[i] = i % 4;
  in.up();
  count<<<1, 32>>>(in.device, out.device);
  return ok();
}
