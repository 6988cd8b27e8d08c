// SPDX-License-Identifier: Apache-2.0
// Of a pipeline with a producer warp and consumer warps, the consumers wait for a stage before they
// read it.
#include <cooperative_groups.h>
#include <cuda/pipeline>

#include "../programs/check.cuh"

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
      pipeline.producer_acquire();  // expect: deadlock
      cuda::memcpy_async(&kept[i % stages][lane], &in[32 * i + lane], sizeof(int),  // expect: race
                         pipeline);
      pipeline.producer_commit();  // expect: race
    }
  } else {
    int sum = 0;
    for (int i = 0; i < rounds; ++i) {
#ifndef BUG
      pipeline.consumer_wait();
#endif
      sum += kept[i % stages][31 - lane];  // expect: race
      pipeline.consumer_release();
    }
    out[lane] = sum;
  }
}

int main() {
  Array<int> in(32 * rounds), out(32);
  for (int i = 0; i < 32 * rounds; ++i) in[i] = i;
  in.up();
  sums<<<1, 64>>>(in.device, out.device);
#ifndef BUG
  out.down();
  for (int t = 0; t < 32; ++t) {
    int sum = 0;
    for (int i = 0; i < rounds; ++i) sum += 32 * i + 31 - t;
    CHECK(out[t] == sum);
  }
#endif
  return ok();
}
