// SPDX-License-Identifier: Apache-2.0
// wait_prior<1> leaves the batch committed last in flight; the last batch needs wait.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>

#include "../programs/check.cuh"
namespace cg = cooperative_groups;

__global__ void sums(const int* in, int* out, int tiles) {
  __shared__ alignas(16) int kept[2][64];
  auto block = cg::this_thread_block();
  const int t = threadIdx.x;
  int sum = 0;
  cg::memcpy_async(block, kept[0], in, sizeof(kept[0]));
  for (int i = 0; i < tiles; ++i) {
    if (i + 1 < tiles) {
      cg::memcpy_async(block, kept[(i + 1) % 2], in + 64 * (i + 1),  // expect: race

                       sizeof(kept[0]));
#ifdef BUG
    }
    cg::wait_prior<1>(block);
#else
      cg::wait_prior<1>(block);
    } else {
      cg::wait(block);
    }
#endif
    sum += kept[i % 2][63 - t];  // expect: race
    block.sync();
  }
  out[t] = sum;
}

int main() {
  Array<int> in(256), out(64);
  for (int i = 0; i < 256; ++i) in[i] = i;
  in.up();
  sums<<<1, 64>>>(in.device, out.device, 4);
#ifndef BUG
  out.down();
  for (int t = 0; t < 64; ++t) CHECK(out[t] == 384 + 4 * (63 - t));
#endif
  return ok();
}
