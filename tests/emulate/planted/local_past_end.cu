// SPDX-License-Identifier: Apache-2.0
// An array of a thread's own.
#include "../programs/check.cuh"

__global__ void digits(int* out, int n) {
  int count[4] = {};
  for (int i = 0; i < n; ++i) count[(i + threadIdx.x) % n]++;  // expect: out_of_bounds
  for (int i = 0; i < 4; ++i) out[4 * threadIdx.x + i] = count[i];
}

int main() {
  Array<int> out(128);
#ifdef BUG
  digits<<<1, 32>>>(out.device, 5);
#else
  digits<<<1, 32>>>(out.device, 4);
#endif
  return ok();
}
