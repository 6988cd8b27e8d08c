// SPDX-License-Identifier: Apache-2.0
// Behind the last of two copies none may be left on its way.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>

#include "../programs/check.cuh"

namespace cg = cooperative_groups;

__global__ void sums(const int* in, int* out) {
  __shared__ alignas(16) int kept[2][64];
  auto block = cg::this_thread_block();
  const int t = threadIdx.x;
  cg::memcpy_async(block, kept[0], in, sizeof(kept[0]));
  cg::memcpy_async(block, kept[1], in + 64, sizeof(kept[1]));  // expect: race
  cg::wait_prior<1>(block);
  int sum = kept[0][63 - t];
#ifdef BUG
  cg::wait_prior<1>(block);
#else
  cg::wait_prior<0>(block);
#endif
  sum += kept[1][63 - t];  // expect: race
  out[t] = sum;
}

int main() {
  Array<int> in(128), out(64);
  sums<<<1, 64>>>(in.device, out.device);
  return ok();
}
