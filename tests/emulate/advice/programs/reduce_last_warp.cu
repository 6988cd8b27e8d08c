// SPDX-License-Identifier: Apache-2.0
// A sum whose last warp goes on alone.
#include "check.cuh"

__global__ void sum(const int* in, int* out) {
  __shared__ int s[128];
  int t = threadIdx.x;
  s[t] = in[t];
  __syncthreads();
  if (t < 64) s[t] += s[t + 64];
  __syncthreads();
  if (t < 32) {
    int v = s[t] + s[t + 32];
    s[t] = v;
    __syncwarp();
    for (int d = 16; d > 0; d /= 2) {
      v += s[(t + d) % 32];
#ifndef BUG
      __syncwarp();
#endif
      s[t] = v;
      __syncwarp();
    }
    if (t == 0) out[0] = v;
  }
}
int main() {
  Array<int> in(128), out(1);
  int e = 0;
  for (int i = 0; i < 128; ++i) e += in[i] = i % 11;
  in.up();
  sum<<<1, 128>>>(in.device, out.device);
  out.down();
  CHECK(out[0] == e);
  return ok();
}
