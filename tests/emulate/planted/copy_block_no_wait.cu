// SPDX-License-Identifier: Apache-2.0
// A block copies the next tile while it adds up this one: each round waits for its own.
#include <cooperative_groups.h>
#include <cuda/barrier>

#include "../programs/check.cuh"

__global__ void sums(const int* in, int* out, int tiles) {
  __shared__ cuda::barrier<cuda::thread_scope_block> barriers[2];
  __shared__ alignas(16) int kept[2][64];
  auto block = cooperative_groups::this_thread_block();
  const int t = threadIdx.x;
  if (t < 2) init(&barriers[t], 64);
  block.sync();
  cuda::memcpy_async(block, kept[0], in, sizeof(kept[0]), barriers[0]);  // expect: race
  int sum = 0;
  for (int i = 0; i < tiles; ++i) {
    if (i + 1 < tiles) {
      cuda::memcpy_async(block, kept[(i + 1) % 2], in + 64 * (i + 1),
                         sizeof(kept[0]), barriers[(i + 1) % 2]);
    }
#ifdef BUG
    barriers[(i + 1) % 2].arrive_and_wait();
#else
    barriers[i % 2].arrive_and_wait();
#endif
    sum += kept[i % 2][63 - t];  // expect: race
    block.sync();
  }
  out[t] = sum;
}

int main() {
  Array<int> in(128), out(64);
  sums<<<1, 64>>>(in.device, out.device, 2);
  return ok();
}
