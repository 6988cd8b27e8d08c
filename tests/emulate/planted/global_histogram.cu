// SPDX-License-Identifier: Apache-2.0
// Atomic counting in bins that blocks share.
#include "../programs/check.cuh"

__global__ void count(const int* in, int* bins) {
  const int v = in[blockIdx.x * blockDim.x + threadIdx.x];
#ifdef BUG
  bins[v] += 1;  // expect: race
#else
  atomicAdd(bins + v, 1);
#endif
}

int main() {
  Array<int> in(256), bins(16);
  for (int i = 0; i < 256; ++i) in[i] = i % 16;
  in.up();
  count<<<2, 128>>>(in.device, bins.device);
  return ok();
}
