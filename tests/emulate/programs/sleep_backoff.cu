// SPDX-License-Identifier: Apache-2.0
// Waiting with __nanosleep() that grows, and a spin lock around a critical section.
#include "check.cuh"

__global__ void guarded(int* lock, int* value) {
  for (int done = 0; done == 0;) {
    unsigned pause = 8;
    while (atomicCAS(lock, 0, 1) != 0) {
      __nanosleep(pause);
      pause = min(2 * pause, 256u);
    }
    __threadfence();
    *value += 1;
    __threadfence();
    atomicExch(lock, 0);
    done = 1;
  }
}

int main() {
  Array<int> lock(1), value(1);
  guarded<<<4, 8>>>(lock.device, value.device);
  value.down();
  CHECK(value[0] == 32);
  return ok();
}
