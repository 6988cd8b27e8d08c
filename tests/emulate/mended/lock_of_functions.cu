// SPDX-License-Identifier: Apache-2.0
// A lock behind two functions, of which the one that frees it has no fence.
#include "check.cuh"

__device__ void take(int* lock) {
  while (atomicCAS(lock, 0, 1) != 0) {
  }
}
__device__ void free_again(int* lock) {
#ifndef BUG
  __threadfence();
#endif
  atomicExch(lock, 0);
}
__global__ void best(int* top, int* lock, const int* in) {
  if (threadIdx.x != 0) return;
  take(lock);
  if (in[blockIdx.x] > top[0]) {  // expect: race
    top[1] = blockIdx.x;      // expect: race
    top[0] = in[blockIdx.x];  // expect: race
  }
  free_again(lock);
}

int main() {
  Array<int> in(8), top(2), lock(1);
  for (int i = 0; i < 8; ++i) in[i] = 5 * i % 8 + 1;
  in.up();
  best<<<8, 32>>>(top.device, lock.device, in.device);
  top.down();
  CHECK(top[0] == 8 && top[1] == 3);
  return ok();
}
// says: frees the lock
