// SPDX-License-Identifier: Apache-2.0
// A consumer releases a stage behind its reads, not before them.
#include <cooperative_groups.h>
#include <cuda/pipeline>

#include "check.cuh"

constexpr int stages = 2, rounds = 6;

__global__ void sums(const int* in, int* out) {
  __shared__ alignas(16) int kept[stages][32];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
  auto block = cooperative_groups::this_thread_block();
  const bool produces = threadIdx.x < 32;
  auto pipeline = cuda::make_pipeline(
      block, &state, produces ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer);
  const int lane = threadIdx.x % 32;
  if (produces) {
    for (int i = 0; i < rounds; ++i) {
      pipeline.producer_acquire();
      cuda::memcpy_async(&kept[i % stages][lane], &in[32 * i + lane], sizeof(int),  // expect: race
                         pipeline);
      pipeline.producer_commit();
    }
  } else {
    int sum = 0;
    for (int i = 0; i < rounds; ++i) {
      pipeline.consumer_wait();
#ifdef BUG
      pipeline.consumer_release();
      sum += kept[i % stages][31 - lane];  // expect: race
#else
      sum += kept[i % stages][31 - lane];
      pipeline.consumer_release();
#endif
    }
    out[lane] = sum;
  }
}

int main() {
  Array<int> in(32 * rounds), out(32);
  for (int i = 0; i < 32 * rounds; ++i) in[i] = i;
  in.up();
  sums<<<1, 64>>>(in.device, out.device);
  out.down();
  for (int t = 0; t < 32; ++t) {
    int sum = 0;
    for (int i = 0; i < rounds; ++i) sum += 32 * i + 31 - t;
    CHECK(out[t] == sum);
  }
  return ok();
}
// says: a pipeline's consumer_release()
// never: __syncthreads
