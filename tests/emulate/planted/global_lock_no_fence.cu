// SPDX-License-Identifier: Apache-2.0
// A lock's holder passes on what it has done by a fence.
#include "../programs/check.cuh"

__global__ void add(int* lock, int* sum) {
  if (threadIdx.x != 0) return;
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  *sum += blockIdx.x + 1;  // expect: race
#ifndef BUG
  __threadfence();
#endif
  atomicExch(lock, 0);
}

int main() {
  Array<int> lock(1), sum(1);
  add<<<4, 32>>>(lock.device, sum.device);
  sum.down();
#ifndef BUG
  CHECK(sum[0] == 10);
#endif
  return ok();
}
