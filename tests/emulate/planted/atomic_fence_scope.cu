// SPDX-License-Identifier: Apache-2.0
// A fence reaches as far as its scope.
#include <cuda/atomic>

#include "../programs/check.cuh"

#ifdef BUG
constexpr auto scope = cuda::thread_scope_block;
#else
constexpr auto scope = cuda::thread_scope_device;
#endif

__global__ void hand_over(int* data, int* flag, int* out) {
  cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
  if (blockIdx.x == 0) {
    *data = 42;  // expect: race
    cuda::atomic_thread_fence(cuda::memory_order_release, scope);
    ready.store(1, cuda::memory_order_relaxed);
  } else {
    while (ready.load(cuda::memory_order_relaxed) == 0) {
    }
    cuda::atomic_thread_fence(cuda::memory_order_acquire, cuda::thread_scope_device);
    *out = *data;  // expect: race
  }
}

int main() {
  Array<int> data(1), flag(1), out(1);
  hand_over<<<2, 1>>>(data.device, flag.device, out.device);
  return ok();
}
