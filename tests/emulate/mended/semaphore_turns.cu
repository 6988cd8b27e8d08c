// SPDX-License-Identifier: Apache-2.0
// Blocks take turns by a semaphore: who adds before passes on what it has written by a fence.
#include "check.cuh"

__global__ void chain(float* total, int* turn) {
  if (threadIdx.x == 0) {
    while (atomicAdd(turn, 0) != blockIdx.x) {
    }
    *total += blockIdx.x + 1;  // expect: race
#ifndef BUG
    __threadfence();
#endif
    atomicAdd(turn, 1);
  }
}

int main() {
  Array<float> total(1);
  Array<int> turn(1);
  chain<<<6, 32>>>(total.device, turn.device);
  total.down();
  CHECK(total[0] == 21);
  return ok();
}
// says: __threadfence()
// never: atomicAdd(total
