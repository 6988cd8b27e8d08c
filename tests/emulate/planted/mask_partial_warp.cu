// SPDX-License-Identifier: Apache-2.0
// A sum of floats over a block that is no whole warp: the shuffle reads lanes that do not exist.
#include "../programs/check.cuh"

__global__ void mean(const float* in, float* out, int n) {
  const int t = threadIdx.x;
  float v = in[t];
  for (int d = 16; d > 0; d /= 2) {
#ifdef BUG
    v += __shfl_xor_sync(0xffffffffu, v, d);  // expect: warp_sync
#else
    const float other = __shfl_xor_sync(0xffffffffu, v, d);
    v += (t ^ d) < n ? other : 0;
#endif
  }
  if (t == 0) *out = v / n;
}

int main() {
  const int n = 24;
  Array<float> in(n), out(1);
  for (int i = 0; i < n; ++i) in[i] = 1;
  in.up();
  mean<<<1, n>>>(in.device, out.device, n);
  return ok();
}
