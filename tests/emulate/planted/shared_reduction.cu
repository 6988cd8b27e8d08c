// SPDX-License-Identifier: Apache-2.0
// A barrier in each round of a tree.
#include "../programs/check.cuh"

__global__ void sum(const int* in, int* out) {
  __shared__ int part[128];
  const int t = threadIdx.x;
  part[t] = in[t];
  __syncthreads();
  for (int step = 64; step > 0; step /= 2) {
    if (t < step) part[t] += part[t + step];  // expect: race
#ifndef BUG
    __syncthreads();
#endif
  }
  if (t == 0) *out = part[0];
}

int main() {
  Array<int> in(128), out(1);
  for (int i = 0; i < 128; ++i) in[i] = i;
  in.up();
  sum<<<1, 128>>>(in.device, out.device);
  out.down();
#ifndef BUG
  CHECK(out[0] == 127 * 64);
#endif
  return ok();
}
