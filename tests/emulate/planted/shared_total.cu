// SPDX-License-Identifier: Apache-2.0
// A barrier before the last thread's sum is read by all.
#include "../programs/check.cuh"

__global__ void normalize(const int* in, int* out) {
  __shared__ int total;
  __shared__ int part[64];
  const int t = threadIdx.x;
  part[t] = in[t];
  __syncthreads();
  if (t == 63) {
    int sum = 0;
    for (int i = 0; i < 64; ++i) sum += part[i];
    total = sum;  // expect: race
  }
#ifndef BUG
  __syncthreads();
#endif
  out[t] = 100 * in[t] / max(total, 1);  // expect: race
}

int main() {
  Array<int> in(64), out(64);
  for (int i = 0; i < 64; ++i) in[i] = i;
  in.up();
  normalize<<<1, 64>>>(in.device, out.device);
  return ok();
}
