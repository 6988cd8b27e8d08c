// SPDX-License-Identifier: Apache-2.0
// cuda::barrier in shared memory: arrivals, phases, asynchronous copies.
#include <cooperative_groups.h>
#include <cuda/barrier>

#include "check.cuh"

#pragma nv_diag_suppress static_var_with_dynamic_init
using Barrier = cuda::barrier<cuda::thread_scope_block>;

__global__ void rounds(const int* in, int* out) {
  __shared__ Barrier barrier;
  __shared__ int kept[64];
  auto block = cooperative_groups::this_thread_block();
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  __syncthreads();
  cuda::memcpy_async(block, kept, in, sizeof(int) * 64, barrier);
  barrier.arrive_and_wait();
  int v = kept[63 - threadIdx.x];
  for (int round = 0; round < 3; ++round) {
    auto token = barrier.arrive();
    barrier.wait(std::move(token));
    kept[threadIdx.x] = v + round;
    barrier.arrive_and_wait();
    v = kept[(threadIdx.x + 1) % 64];
  }
  out[threadIdx.x] = v;
}

int main() {
  Array<int> in(64), out(64);
  for (int i = 0; i < 64; ++i) in[i] = i;
  in.up();
  rounds<<<1, 64>>>(in.device, out.device);
  out.down();
  for (int t = 0; t < 64; ++t) CHECK(out[t] == 63 - (t + 3) % 64 + 3);
  return ok();
}
