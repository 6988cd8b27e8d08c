// SPDX-License-Identifier: Apache-2.0
// lock_no_fence with a lock that is acquired and freed by functions.
#include "check.cuh"

struct Lock {
  int* word;
  __device__ void acquire() {
    while (atomicCAS(word, 0, 1) != 0) {
    }
  }
  __device__ void release() {
#ifndef BUG
    __threadfence();
#endif
    atomicExch(word, 0);
  }
};

__global__ void largest(Lock lock, const int* x, int* best, int* where) {
  if (threadIdx.x != 0) return;
  lock.acquire();
  if (x[blockIdx.x] > *best) {
    *best = x[blockIdx.x];
    *where = blockIdx.x;
  }
  lock.release();
}

int main() {
  Array<int> word(1), x(6), best(1), where(1);
  for (int i = 0; i < 6; ++i) x[i] = i * 5 % 7;
  x.up();
  largest<<<6, 32>>>(Lock{word.device}, x.device, best.device, where.device);
  best.down();
  where.down();
  CHECK(best[0] == 6 && where[0] == 4);
  return ok();
}
