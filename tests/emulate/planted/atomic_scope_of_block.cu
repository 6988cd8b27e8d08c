// SPDX-License-Identifier: Apache-2.0
// A cuda::atomic_ref of the block's scope is atomic to that block alone.
#include <cuda/atomic>

#include "../programs/check.cuh"

#ifdef BUG
constexpr auto scope = cuda::thread_scope_block;
#else
constexpr auto scope = cuda::thread_scope_device;
#endif

__global__ void count(int* counter) {
  cuda::atomic_ref<int, scope> all(*counter);
  all.fetch_add(1);  // expect: race
}

int main() {
  Array<int> counter(1);
  count<<<3, 32>>>(counter.device);
  return ok();
}
