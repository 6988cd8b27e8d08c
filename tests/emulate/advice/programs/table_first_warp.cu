// SPDX-License-Identifier: Apache-2.0
// A table that the first warp computes for all.
#include "check.cuh"

__global__ void table(const int* in, int* out, int n) {
  __shared__ int lut[32];
  if (threadIdx.x < 32) {
    int v = threadIdx.x;
    for (int k = 0; k < 3; ++k) v = v * 5 % 32;
    lut[threadIdx.x] = v;
  }
#ifndef BUG
  __syncthreads();
#endif
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = lut[in[i] & 31];
  }
}
int main() {
  Array<int> in(300), out(300);
  for (int i = 0; i < 300; ++i) in[i] = i * 11;
  in.up();
  table<<<3, 128>>>(in.device, out.device, 300);
  out.down();
  for (int i = 0; i < 300; ++i) CHECK(out[i] == (in[i] & 31) * 125 % 32);
  return ok();
}
