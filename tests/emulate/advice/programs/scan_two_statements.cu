// SPDX-License-Identifier: Apache-2.0
// A scan that reads and writes in two statements with no barrier between.
#include "check.cuh"

__global__ void prefix(const float* in, float* out) {
  __shared__ float sums[64];
  const int i = threadIdx.x;
  sums[i] = in[i];
  __syncthreads();
  for (int d = 1; d < blockDim.x; d *= 2) {
    float add = 0;
    if (i >= d) add = sums[i - d];
#ifndef BUG
    __syncthreads();
#endif
    sums[i] += add;
    __syncthreads();
  }
  out[i] = sums[i];
}

int main() {
  Array<float> in(64), out(64);
  for (int i = 0; i < 64; ++i) in[i] = i + 1;
  in.up();
  prefix<<<1, 64>>>(in.device, out.device);
  out.down();
  for (int i = 0; i < 64; ++i) CHECK(out[i] == (i + 1) * (i + 2) / 2);
  return ok();
}
