// SPDX-License-Identifier: Apache-2.0
// A block's total, which its first thread leaves for all.
#include "check.cuh"

__global__ void normalize(const int* in, int* out) {
  __shared__ int part[4];
  __shared__ int total;
  const int t = threadIdx.x;
  int v = in[t];
  for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(~0u, v, d);
  if (t % 32 == 0) part[t / 32] = v;
#ifndef BUG
  __syncthreads();
#endif
  if (t == 0) total = part[0] + part[1] + part[2] + part[3];
  __syncthreads();
  out[t] = in[t] * 1000 / total;
}

int main() {
  Array<int> in(128), out(128);
  int total = 0;
  for (int i = 0; i < 128; ++i) total += in[i] = i % 21;
  in.up();
  normalize<<<1, 128>>>(in.device, out.device);
  out.down();
  for (int i = 0; i < 128; ++i) CHECK(out[i] == in[i] * 1000 / total);
  return ok();
}
