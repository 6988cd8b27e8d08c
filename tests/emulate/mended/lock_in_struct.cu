// SPDX-License-Identifier: Apache-2.0
// A lock as a struct with lock and unlock; unlock needs a fence before it.
#include "check.cuh"

struct Lock {
  int* mutex;
  __device__ void lock() {
    while (atomicCAS(mutex, 0, 1) != 0) {
    }
#ifndef BUG
    __threadfence();
#endif
  }
  __device__ void unlock() {
#ifndef BUG
    __threadfence();
#endif
    atomicExch(mutex, 0);
  }
};
__global__ void count(Lock lock, float* total) {
  if (threadIdx.x == 0) {
    lock.lock();
    *total = *total + 1;  // expect: race
    lock.unlock();
  }
}

int main() {
  Array<int> mutex(1);
  Array<float> total(1);
  count<<<20, 32>>>(Lock{mutex.device}, total.device);
  total.down();
  CHECK(total[0] == 20);
  return ok();
}
// says: __threadfence()
// says: which frees the lock
