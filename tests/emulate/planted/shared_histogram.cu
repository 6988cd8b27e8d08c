// SPDX-License-Identifier: Apache-2.0
// Atomic counting in shared memory.
#include "../programs/check.cuh"

__global__ void count(const int* in, int* out) {
  __shared__ int bins[8];
  const int t = threadIdx.x;
  if (t < 8) bins[t] = 0;
  __syncthreads();
#ifdef BUG
  bins[in[t]]++;  // expect: race
#else
  atomicAdd(&bins[in[t]], 1);
#endif
  __syncthreads();
  if (t < 8) out[t] = bins[t];
}

int main() {
  Array<int> in(128), out(8);
  for (int i = 0; i < 128; ++i) in[i] = i % 8;
  in.up();
  count<<<1, 128>>>(in.device, out.device);
  return ok();
}
