// SPDX-License-Identifier: Apache-2.0
// Who shuffles is one of the lanes that the mask names.
#include "../programs/check.cuh"

__global__ void rotate(int* out) {
  const int t = threadIdx.x;
#ifdef BUG
  out[t] = __shfl_sync(0x7fffffffu, t, (t + 1) % 31);  // expect: warp_sync
#else
  out[t] = __shfl_sync(0xffffffffu, t, (t + 1) % 32);
#endif
}

int main() {
  Array<int> out(32);
  rotate<<<1, 32>>>(out.device);
  return ok();
}
