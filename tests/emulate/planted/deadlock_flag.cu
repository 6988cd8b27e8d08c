// SPDX-License-Identifier: Apache-2.0
// A flag that somebody sets.
#include "../programs/check.cuh"

__global__ void wait(volatile int* flag, int* out) {
#ifdef BUG
  while (*flag == 0) {  // expect: deadlock
  }
#else
  if (threadIdx.x == 0) *flag = 1;
  while (*flag == 0) {
  }
#endif
  out[threadIdx.x] = 1;
}

int main() {
  Array<int> flag(1), out(32);
  wait<<<1, 32>>>(flag.device, out.device);
  return ok();
}
