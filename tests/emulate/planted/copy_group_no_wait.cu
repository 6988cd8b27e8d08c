// SPDX-License-Identifier: Apache-2.0
// cooperative_groups::wait() behind memcpy_async().
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>

#include "../programs/check.cuh"

__global__ void copy(const int* in, int* out) {
  __shared__ int kept[128];
  auto block = cooperative_groups::this_thread_block();
  cooperative_groups::memcpy_async(block, kept, in, 128 * sizeof(int));  // expect: race
#ifndef BUG
  cooperative_groups::wait(block);
#endif
  out[threadIdx.x] = kept[(threadIdx.x + 32) % 128];  // expect: race
}

int main() {
  Array<int> in(128), out(64);
  for (int i = 0; i < 128; ++i) in[i] = i;
  in.up();
  copy<<<1, 64>>>(in.device, out.device);
  return ok();
}
