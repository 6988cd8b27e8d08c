// SPDX-License-Identifier: Apache-2.0
// The last steps of a sum are one warp's, whose lanes need not run in step.
#include "check.cuh"

__global__ void sum(int* out, const int* in) {
  __shared__ int s[256];
  const int t = threadIdx.x;
  s[t] = in[t];
  __syncthreads();
  for (int d = 128; d >= 32; d /= 2) {
    if (t < d) s[t] += s[t + d];
    __syncthreads();
  }
  if (t < 32) {
    for (int d = 16; d > 0; d /= 2) {
      if (t < d) s[t] += s[t + d];  // expect: race
#ifndef BUG
      __syncwarp();
#endif
    }
  }
  if (t == 0) *out = s[0];
}

int main() {
  Array<int> in(256), out(1);
  for (int i = 0; i < 256; ++i) in[i] = i;
  in.up();
  sum<<<1, 256>>>(out.device, in.device);
  out.down();
  CHECK(out[0] == 255 * 128);
  return ok();
}
// says: __syncwarp()
