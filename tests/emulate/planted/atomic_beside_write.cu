// SPDX-License-Identifier: Apache-2.0
// A counter is reset before anybody counts.
#include "../programs/check.cuh"

__global__ void count(const int* in, int* out) {
  __shared__ int positive;
  const int t = threadIdx.x;
  if (t == 31) positive = 0;  // expect: race
#ifndef BUG
  __syncthreads();
#endif
  if (t != 31 && in[t] > 0) atomicAdd(&positive, 1);  // expect: race
  __syncthreads();
  if (t == 0) *out = positive;
}

int main() {
  Array<int> in(32), out(1);
  for (int i = 0; i < 32; ++i) in[i] = i - 9;
  in.up();
  count<<<1, 32>>>(in.device, out.device);
  return ok();
}
