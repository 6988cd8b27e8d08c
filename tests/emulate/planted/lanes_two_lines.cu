// SPDX-License-Identifier: Apache-2.0
// Lanes that part need not come back in the order of the lines.
#include "../programs/check.cuh"

__global__ void choose(int* out) {
  __shared__ int winner;
  const int t = threadIdx.x;
  if (t == 3) winner = 3;  // expect: race
#ifndef BUG
  __syncwarp();
#endif
  if (t == 9) winner = 9;  // expect: race
  __syncwarp();
  out[t] = winner;
}

int main() {
  Array<int> out(32);
  choose<<<1, 32>>>(out.device);
  return ok();
}
