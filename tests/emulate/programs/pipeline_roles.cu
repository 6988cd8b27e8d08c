// SPDX-License-Identifier: Apache-2.0
// A pipeline of a block: one warp fetches, the other computes, two stages in between.
#include <cooperative_groups.h>

#include <cuda/pipeline>

#include "check.cuh"

constexpr int batches = 6, stages = 2;

__global__ void hand_over(const int* in, int* out) {
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
  __shared__ int stage[stages][32];
  const auto block = cooperative_groups::this_thread_block();
  const bool fetches = threadIdx.x < 32;
  const int lane = static_cast<int>(threadIdx.x % 32);
  auto pipe = cuda::make_pipeline(
      block, &state, fetches ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer);
  int sum = 0;
  for (int i = 0; i < batches; ++i) {
    if (fetches) {
      pipe.producer_acquire();
      stage[i % stages][lane] = in[i * 32 + lane];
      pipe.producer_commit();
    } else {
      pipe.consumer_wait();
      sum += stage[i % stages][31 - lane];
      pipe.consumer_release();
    }
  }
  if (!fetches) out[lane] = sum;
}

int main() {
  Array<int> in(32 * batches), out(32);
  for (int i = 0; i < in.size; ++i) in[i] = i;
  in.up();
  hand_over<<<1, 64>>>(in.device, out.device);
  out.down();
  for (int lane = 0; lane < 32; ++lane) {
    CHECK(out[lane] == 32 * (0 + 1 + 2 + 3 + 4 + 5) + batches * (31 - lane));
  }
  return ok();
}
