// SPDX-License-Identifier: Apache-2.0
// A lock around an ordinary counter, taken by one thread per block.
#include "check.cuh"

__global__ void count(int* lock, int* counter) {
  if (threadIdx.x == 0) {
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    __threadfence();
    volatile int* value = counter;
    *value = *value + 1;
    __threadfence();
    atomicExch(lock, 0);
  }
}

int main() {
  Array<int> lock(1), counter(1);
  count<<<50, 32>>>(lock.device, counter.device);
  counter.down();
  CHECK(counter[0] == 50);
  return ok();
}
