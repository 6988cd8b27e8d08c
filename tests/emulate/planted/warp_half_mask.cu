// SPDX-License-Identifier: Apache-2.0
// A __syncwarp() of the lanes that exchange, not of some.
#include "../programs/check.cuh"

__global__ void halves(const int* in, int* out) {
  __shared__ int kept[32];
  const int t = threadIdx.x;
  kept[t] = in[t];  // expect: race
#ifdef BUG
  __syncwarp(t < 16 ? 0x0000ffffu : 0xffff0000u);
#else
  __syncwarp();
#endif
  out[t] = kept[(t + 16) % 32];  // expect: race
}

int main() {
  Array<int> in(32), out(32);
  for (int i = 0; i < 32; ++i) in[i] = i;
  in.up();
  halves<<<1, 32>>>(in.device, out.device);
  return ok();
}
