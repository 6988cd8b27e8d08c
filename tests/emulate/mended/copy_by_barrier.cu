// SPDX-License-Identifier: Apache-2.0
// Copies that a barrier tracks: a thread that arrives without a wait, and a barrier of the block.
#include <cuda/barrier>

#include "check.cuh"

__global__ void reverse(const int* in, int* out) {
  __shared__ alignas(16) int kept[128];
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  const int t = threadIdx.x;
  if (t == 0) init(&barrier, blockDim.x);
  __syncthreads();
  cuda::memcpy_async(&kept[t], &in[t], sizeof(int), barrier);  // expect: launch
#ifdef BUG
  (void)barrier.arrive();
#else
  barrier.arrive_and_wait();
#endif
  __syncthreads();
  out[t] = kept[127 - t];  // expect: race
}

int main() {
  Array<int> in(128), out(128);
  for (int i = 0; i < 128; ++i) in[i] = i;
  in.up();
  reverse<<<1, 128>>>(in.device, out.device);
  out.down();
  for (int i = 0; i < 128; ++i) CHECK(out[i] == 127 - i);
  return ok();
}
// says: by wait() of the barrier
// never: expect_tx
// never: bulk
