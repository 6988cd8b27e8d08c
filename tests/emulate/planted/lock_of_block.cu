// SPDX-License-Identifier: Apache-2.0
// A lock that blocks share is taken by atomics that reach them all.
#include "../programs/check.cuh"

__global__ void add(int* lock, int* sum) {
#ifdef BUG
  while (atomicCAS_block(lock, 0, 1) != 0) {  // expect: race
  }
#else
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  *sum += blockIdx.x;
#endif
  __threadfence();
#ifdef BUG
  atomicExch_block(lock, 0);  // expect: race
#else
  atomicExch(lock, 0);
#endif
}

int main() {
  Array<int> lock(1), sum(1);
  add<<<4, 1>>>(lock.device, sum.device);
  return ok();
}
