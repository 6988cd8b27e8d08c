// SPDX-License-Identifier: Apache-2.0
// A shuffle in a branch whose mask names the lanes that pass the branch by and go on.
#include "../programs/check.cuh"

__global__ void sum(int* out) {
  const int t = threadIdx.x;
  int v = t;
#ifdef BUG
  if (t < 16) v += __shfl_down_sync(0xffffffffu, v, 8, 16);  // expect: warp_sync
#else
  if (t < 16) v += __shfl_down_sync(0x0000ffffu, v, 8, 16);
#endif
  out[t] = v;
}

int main() {
  Array<int> out(32);
  sum<<<1, 32>>>(out.device);
  return ok();
}
