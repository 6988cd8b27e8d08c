// SPDX-License-Identifier: Apache-2.0
// A barrier before a buffer is filled anew.
#include "../programs/check.cuh"

__global__ void twice(const int* in, int* out) {
  __shared__ int kept[64];
  const int t = threadIdx.x;
  int sum = 0;
  for (int round = 0; round < 2; ++round) {
    kept[t] = in[64 * round + t];  // expect: race
    __syncthreads();
    sum += kept[(t + 32) % 64];  // expect: race
#ifndef BUG
    __syncthreads();
#endif
  }
  out[t] = sum;
}

int main() {
  Array<int> in(128), out(64);
  for (int i = 0; i < 128; ++i) in[i] = i;
  in.up();
  twice<<<1, 64>>>(in.device, out.device);
  return ok();
}
