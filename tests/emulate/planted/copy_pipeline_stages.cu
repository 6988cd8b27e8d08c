// SPDX-License-Identifier: Apache-2.0
// So many batches are on their way as there are stages, not one more: the last would land in the
// one that is read.
#include <cooperative_groups.h>
#include <cuda/pipeline>

#include "../programs/check.cuh"

constexpr int stages = 3, tiles = 8;

__global__ void sums(const int* in, int* out) {
  __shared__ alignas(16) int kept[stages][32];
  auto block = cooperative_groups::this_thread_block();
  auto pipeline = cuda::make_pipeline();
  const int t = threadIdx.x;
  int sum = 0, next = 0;
#ifdef BUG
  const int ahead = stages + 1;
#else
  const int ahead = stages;
#endif
  for (int i = 0; i < tiles; ++i) {
    for (; next < tiles && next < i + ahead; ++next) {
      pipeline.producer_acquire();
      cuda::memcpy_async(block, kept[next % stages], in + 32 * next,  // expect: race
                         cuda::aligned_size_t<16>(sizeof(kept[0])), pipeline);
      pipeline.producer_commit();
    }
    pipeline.consumer_wait();
    block.sync();
    sum += kept[i % stages][31 - t];  // expect: race
    block.sync();
    pipeline.consumer_release();
  }
  out[t] = sum;
}

int main() {
  Array<int> in(32 * tiles), out(32);
  sums<<<1, 32>>>(in.device, out.device);
  return ok();
}
