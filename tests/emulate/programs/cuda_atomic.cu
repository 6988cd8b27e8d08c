// SPDX-License-Identifier: Apache-2.0
// cuda::atomic and cuda::atomic_ref.
#include <cuda/atomic>

#include "check.cuh"

__device__ cuda::atomic<int, cuda::thread_scope_device> total(0);

__global__ void count(int* plain, unsigned* most) {
  total.fetch_add(2, cuda::memory_order_relaxed);
  cuda::atomic_ref<int, cuda::thread_scope_device> view(*plain);
  view += 3;
  cuda::atomic_ref<unsigned, cuda::thread_scope_block> top(most[blockIdx.x]);
  top.fetch_max(threadIdx.x);
  int expected = -1;
  if (view.compare_exchange_strong(expected, 5)) *plain = -100;
}
__global__ void read(int* out) { *out = total.load(cuda::std::memory_order_acquire); }

int main() {
  Array<int> plain(1), out(1);
  Array<unsigned> most(2);
  count<<<2, 50>>>(plain.device, most.device);
  read<<<1, 1>>>(out.device);
  plain.down();
  most.down();
  out.down();
  CHECK(out[0] == 200 && plain[0] == 300 && most[0] == 49 && most[1] == 49);
  return ok();
}
