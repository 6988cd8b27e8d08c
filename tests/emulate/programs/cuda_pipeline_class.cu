// SPDX-License-Identifier: Apache-2.0
// cuda::pipeline with two stages shared by a block.
#include <cooperative_groups.h>
#include <cuda/pipeline>

#include "check.cuh"

__global__ void stages(const int* in, int* out, int count) {
  __shared__ int buffer[2][64];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto block = cooperative_groups::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  int sum = 0;
  for (int fetched = 0, used = 0; used < count; ++used) {
    for (; fetched < count && fetched < used + 2; ++fetched) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, buffer[fetched % 2], in + 64 * fetched, sizeof(int) * 64, pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    sum += buffer[used % 2][63 - threadIdx.x];
    pipe.consumer_release();
  }
  out[threadIdx.x] = sum;
}

int main() {
  Array<int> in(64 * 5), out(64);
  for (int i = 0; i < 320; ++i) in[i] = i;
  in.up();
  stages<<<1, 64>>>(in.device, out.device, 5);
  out.down();
  for (int t = 0; t < 64; ++t) CHECK(out[t] == 5 * (63 - t) + 64 * 10);
  return ok();
}
