// SPDX-License-Identifier: Apache-2.0
// __syncwarp() between lanes of one warp.
#include "../programs/check.cuh"

__global__ void exchange(const int* in, int* out) {
  __shared__ int kept[32];
  const int t = threadIdx.x;
  kept[t] = in[t];  // expect: race
#ifndef BUG
  __syncwarp();
#endif
  out[t] = kept[t ^ 1];  // expect: race
}

int main() {
  Array<int> in(32), out(32);
  for (int i = 0; i < 32; ++i) in[i] = i;
  in.up();
  exchange<<<1, 32>>>(in.device, out.device);
  return ok();
}
