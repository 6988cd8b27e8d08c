// SPDX-License-Identifier: Apache-2.0
// A sum of several words under a lock, which is freed without a fence.
#include "check.cuh"

__global__ void add(int* lock, int* sums, int n) {
  if (threadIdx.x != 0) return;
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  for (int i = 0; i < n; ++i) {
    sums[i] += blockIdx.x + i;
  }
#ifndef BUG
  __threadfence();
#endif
  atomicExch(lock, 0);
}

int main() {
  Array<int> lock(1), sums(8);
  add<<<4, 32>>>(lock.device, sums.device, 8);
  sums.down();
  for (int i = 0; i < 8; ++i) CHECK(sums[i] == 6 + 4 * i);
  return ok();
}
