// SPDX-License-Identifier: Apache-2.0
// A full mask in a branch that half of the lanes take.
#include "../programs/check.cuh"

__global__ void sum(int* out) {
  const int t = threadIdx.x;
  int v = t;
#ifdef BUG
  if (t < 16) v += __shfl_down_sync(0xffffffffu, v, 8);  // expect: warp_sync
  __syncwarp();                                          // expect: warp_sync
#else
  if (t < 16) v += __shfl_down_sync(0x0000ffffu, v, 8, 16);
  __syncwarp();
#endif
  out[t] = v;
}

int main() {
  Array<int> out(32);
  sum<<<1, 32>>>(out.device);
  return ok();
}
