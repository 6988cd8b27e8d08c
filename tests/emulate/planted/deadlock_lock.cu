// SPDX-License-Identifier: Apache-2.0
// A lock that is given back.
#include "../programs/check.cuh"

__global__ void add(int* lock, int* sum) {
  if (threadIdx.x != 0) return;
  while (atomicCAS(lock, 0, 1) != 0) {  // expect: deadlock
  }
  *sum += 1;
  __threadfence();
#ifndef BUG
  atomicExch(lock, 0);
#endif
}

int main() {
  Array<int> lock(1), sum(1);
  add<<<2, 32>>>(lock.device, sum.device);
  return ok();
}
