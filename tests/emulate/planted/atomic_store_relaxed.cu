// SPDX-License-Identifier: Apache-2.0
// A flag that says that data is there releases it.
#include <cuda/atomic>

#include "../programs/check.cuh"

#ifdef BUG
constexpr auto order = cuda::memory_order_relaxed;
#else
constexpr auto order = cuda::memory_order_release;
#endif

__global__ void hand_over(int* data, int* flag, int* out) {
  cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
  if (blockIdx.x == 0) {
    *data = 42;  // expect: race
    ready.store(1, order);
  } else {
    while (ready.load(cuda::memory_order_acquire) == 0) {
    }
    *out = *data;  // expect: race
  }
}

int main() {
  Array<int> data(1), flag(1), out(1);
  hand_over<<<2, 1>>>(data.device, flag.device, out.device);
  return ok();
}
