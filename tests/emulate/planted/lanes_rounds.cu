// SPDX-License-Identifier: Apache-2.0
// Each round of a loop hands the word to another lane: without __syncwarp() in no order.
#include "../programs/check.cuh"

__global__ void rounds(int* out) {
  __shared__ int baton;
  const int t = threadIdx.x;
  for (int i = 0; i < 4; ++i) {
    if (t == i) baton = 10 * i;  // expect: race
#ifndef BUG
    __syncwarp();
#endif
  }
  __syncwarp();
  out[t] = baton;
}

int main() {
  Array<int> out(32);
  rounds<<<1, 32>>>(out.device);
  return ok();
}
