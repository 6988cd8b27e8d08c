// SPDX-License-Identifier: Apache-2.0
// __syncwarp() in the rounds that one warp does alone.
#include "../programs/check.cuh"

__global__ void sum(const int* in, int* out) {
  __shared__ int part[32];
  const int t = threadIdx.x;
  part[t] = in[t];
  __syncthreads();
  for (int step = 16; step > 0; step /= 2) {
    if (t < step) part[t] += part[t + step];  // expect: race
#ifndef BUG
    __syncwarp();
#endif
  }
  if (t == 0) *out = part[0];
}

int main() {
  Array<int> in(32), out(1);
  for (int i = 0; i < 32; ++i) in[i] = i;
  in.up();
  sum<<<1, 32>>>(in.device, out.device);
  return ok();
}
