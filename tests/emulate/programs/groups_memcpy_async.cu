// SPDX-License-Identifier: Apache-2.0
// memcpy_async by a group, and what waits for it.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>

#include "check.cuh"

namespace cg = cooperative_groups;

__global__ void reverse(const int* in, int* out) {
  extern __shared__ int tile[];
  cg::thread_block block = cg::this_thread_block();
  cg::memcpy_async(block, tile, in + blockIdx.x * 64, sizeof(int) * 64);
  cg::wait(block);
  out[blockIdx.x * 64 + threadIdx.x] = tile[63 - threadIdx.x];
}

int main() {
  Array<int> in(128), out(128);
  for (int i = 0; i < 128; ++i) in[i] = i;
  in.up();
  reverse<<<2, 64, 64 * sizeof(int)>>>(in.device, out.device);
  out.down();
  for (int i = 0; i < 128; ++i) CHECK(out[i] == i / 64 * 64 + 63 - i % 64);
  return ok();
}
