// SPDX-License-Identifier: Apache-2.0
// Relaxed loads want a fence behind them, before what they tell of is read.
#include <cuda/atomic>

#include "../programs/check.cuh"

__global__ void hand_over(int* data, int* flag, int* out) {
  cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
  if (blockIdx.x == 0) {
    *data = 42;  // expect: race
    ready.store(1, cuda::memory_order_release);
  } else {
    while (ready.load(cuda::memory_order_relaxed) == 0) {
    }
#ifndef BUG
    __threadfence();
#endif
    *out = *data;  // expect: race
  }
}

int main() {
  Array<int> data(1), flag(1), out(1);
  hand_over<<<2, 1>>>(data.device, flag.device, out.device);
  return ok();
}
