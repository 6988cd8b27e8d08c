// SPDX-License-Identifier: Apache-2.0
// Copies by threads come by the way of threads: neither what was written where they go, nor what
// was written where they come from, nor a barrier that was just initialized needs a fence of the
// asynchronous proxy.
#include <cooperative_groups.h>
#include <cuda/barrier>

#include "check.cuh"

__global__ void relay(int* kept, int* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier, own[64];
  __shared__ alignas(16) int tile[64], mine[64];
  auto block = cooperative_groups::this_thread_block();
  const int t = threadIdx.x;
  init(&own[t], 1);
  mine[t] = 0;
  cuda::memcpy_async(&mine[t], &kept[64 + t], sizeof(int), own[t]);
  if (t == 0) init(&barrier, 64);
  tile[t] = -1;
  kept[t] = 3 * t;
  block.sync();
  cuda::memcpy_async(block, tile, kept, sizeof(tile), barrier);
  own[t].arrive_and_wait();
  barrier.arrive_and_wait();
  out[t] = tile[63 - t] + mine[t];
}

int main() {
  Array<int> kept(128), out(64);
  for (int i = 0; i < 64; ++i) kept[64 + i] = 1000 * i;
  kept.up();
  relay<<<1, 64>>>(kept.device, out.device);
  out.down();
  for (int i = 0; i < 64; ++i) CHECK(out[i] == 3 * (63 - i) + 1000 * i);
  return ok();
}
