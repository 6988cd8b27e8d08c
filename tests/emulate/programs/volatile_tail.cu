// SPDX-License-Identifier: Apache-2.0
// The last rounds of a reduction with volatile shared memory, as older programs have it.
#include "check.cuh"

__global__ void sum(const int* in, int* out) {
  __shared__ volatile int part[64];
  const int t = threadIdx.x;
  part[t] = in[t];
  __syncthreads();
  if (t < 32) {
    part[t] = part[t] + part[t + 32];
    __syncwarp();
    for (int step = 16; step > 0; step /= 2) {
      const int v = part[t] + part[t + step];
      __syncwarp();
      part[t] = v;
      __syncwarp();
    }
    if (t == 0) *out = part[0];
  }
}

int main() {
  Array<int> in(64), out(1);
  for (int i = 0; i < 64; ++i) in[i] = i;
  in.up();
  sum<<<1, 64>>>(in.device, out.device);
  out.down();
  CHECK(out[0] == 2016);
  return ok();
}
