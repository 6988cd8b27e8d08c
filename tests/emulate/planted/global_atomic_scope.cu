// SPDX-License-Identifier: Apache-2.0
// An atomic operation of the block's scope is none to other blocks.
#include "../programs/check.cuh"

__global__ void count(int* counter) {
#ifdef BUG
  atomicAdd_block(counter, 1);  // expect: race
#else
  atomicAdd(counter, 1);
#endif
}

int main() {
  Array<int> counter(1);
  count<<<2, 32>>>(counter.device);
  return ok();
}
