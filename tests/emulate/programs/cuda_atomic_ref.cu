// SPDX-License-Identifier: Apache-2.0
// cuda::atomic_ref, orders, and a message passed by release and acquire.
#include <cuda/atomic>

#include "check.cuh"

__device__ int message;
__global__ void pass(int* flag, int* out, unsigned long long* sum) {
  cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
  if (blockIdx.x == 0) {
    if (threadIdx.x == 0) {
      message = 42;
      ready.store(1, cuda::memory_order_release);
    }
  } else if (threadIdx.x == 0) {
    while (ready.load(cuda::memory_order_acquire) == 0) {
    }
    *out = message;
  }
  cuda::atomic_ref<unsigned long long, cuda::thread_scope_device>(*sum).fetch_add(
      threadIdx.x, cuda::memory_order_relaxed);
}
__global__ void most(int* best) {
  cuda::atomic_ref<int, cuda::thread_scope_device> one(*best);
  one.fetch_max(static_cast<int>(threadIdx.x * 7 % 32));
  int seen = one.load();
  while (seen < 100 && !one.compare_exchange_weak(seen, seen + 1)) {
  }
}

int main() {
  Array<int> flag(1), out(1), best(1);
  Array<unsigned long long> sum(1);
  pass<<<2, 32>>>(flag.device, out.device, sum.device);
  most<<<1, 32>>>(best.device);
  out.down();
  sum.down();
  best.down();
  CHECK(out[0] == 42 && sum[0] == 2 * 496 && best[0] >= 32 && best[0] <= 63);
  return ok();
}
