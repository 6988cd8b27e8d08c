// SPDX-License-Identifier: Apache-2.0
// A barrier before neighbors are read.
#include "../programs/check.cuh"

__global__ void smooth(const int* in, int* out) {
  __shared__ int kept[66];
  const int t = threadIdx.x, i = 64 * blockIdx.x + t;
  kept[t + 1] = in[i + 1];  // expect: race
  if (t == 0) kept[0] = in[i];
  if (t == 63) kept[65] = in[i + 2];
#ifndef BUG
  __syncthreads();
#else
  if (t == 0 || t == 63) __threadfence_block();
#endif
  if (t >= 1 && t < 63) out[i] = kept[t] + kept[t + 1] + kept[t + 2];  // expect: race
}

int main() {
  Array<int> in(130), out(128);
  for (int i = 0; i < 130; ++i) in[i] = i;
  in.up();
  smooth<<<2, 64>>>(in.device, out.device);
  return ok();
}
