// SPDX-License-Identifier: Apache-2.0
// __syncwarp() with the caller in its mask.
#include "../programs/check.cuh"

__global__ void halves(int* out) {
  const int t = threadIdx.x;
#ifdef BUG
  __syncwarp(0x0000ffffu);  // expect: warp_sync
#else
  __syncwarp(0xffffffffu);
#endif
  out[t] = t;
}

int main() {
  Array<int> out(32);
  halves<<<1, 32>>>(out.device);
  return ok();
}
