// SPDX-License-Identifier: Apache-2.0
// Atomic counting.
#include "../programs/check.cuh"

__global__ void count(int* counter) {
#ifdef BUG
  ++*counter;  // expect: race
#else
  atomicAdd(counter, 1);
#endif
}

int main() {
  Array<int> counter(1);
  count<<<4, 64>>>(counter.device);
  return ok();
}
