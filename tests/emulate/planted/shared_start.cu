// SPDX-License-Identifier: Apache-2.0
// A barrier behind what one thread prepares for all.
#include "../programs/check.cuh"

__global__ void start(const int* in, int* out) {
  __shared__ int first;
  if (threadIdx.x == 0) first = in[5];  // expect: race
#ifndef BUG
  __syncthreads();
#endif
  out[threadIdx.x] = first;  // expect: race
}

int main() {
  Array<int> in(16), out(96);
  for (int i = 0; i < 16; ++i) in[i] = i;
  in.up();
  start<<<1, 96>>>(in.device, out.device);
  return ok();
}
