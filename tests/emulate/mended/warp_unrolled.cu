// SPDX-License-Identifier: Apache-2.0
// A sum whose last warp counts on its lanes' running in step.
#include "check.cuh"

__global__ void sum(int* out, const int* in) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  s[t] = in[t];
  __syncthreads();
  if (t < 32) {
#ifdef BUG
    s[t] += s[t + 32];
    s[t] += s[t + 16];  // expect: race
    s[t] += s[t + 8];   // expect: race
    s[t] += s[t + 4];   // expect: race
    s[t] += s[t + 2];   // expect: race
    s[t] += s[t + 1];   // expect: race
#else
    int v = s[t] + s[t + 32];
    for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(~0u, v, d);
    s[t] = v;
#endif
    if (t == 0) *out = s[0];
  }
}

int main() {
  Array<int> in(64), out(1);
  for (int i = 0; i < 64; ++i) in[i] = i;
  in.up();
  sum<<<1, 64>>>(out.device, in.device);
  out.down();
  CHECK(out[0] == 63 * 32);
  return ok();
}
// says: read into a variable, then __syncwarp(), then write
