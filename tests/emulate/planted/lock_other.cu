// SPDX-License-Identifier: Apache-2.0
// What one lock guards another does not.
#include "../programs/check.cuh"

__global__ void add(int* locks, int* sum) {
#ifdef BUG
  int* lock = locks + blockIdx.x % 2;
#else
  int* lock = locks;
#endif
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  __threadfence();
  *sum += blockIdx.x + 1;  // expect: race
  __threadfence();
  atomicExch(lock, 0);
}

int main() {
  Array<int> locks(2), sum(1);
  add<<<4, 1>>>(locks.device, sum.device);
  return ok();
}
