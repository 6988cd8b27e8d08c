// SPDX-License-Identifier: Apache-2.0
// All read whether to stop before one decides anew.
#include "../programs/check.cuh"

__global__ void rounds(int* out) {
  __shared__ bool more;
  const int t = threadIdx.x;
  int count = 0;
  if (t == 0) more = true;
  __syncthreads();
  while (more) {  // expect: race
#ifndef BUG
    __syncthreads();
#endif
    ++count;
    if (t == 0) more = count < 3;  // expect: race
    __syncthreads();               // expect: barrier
  }
  out[t] = count;
}

int main() {
  Array<int> out(64);
  rounds<<<1, 64>>>(out.device);
  return ok();
}
