// SPDX-License-Identifier: Apache-2.0
// Lanes leave a loop after different numbers of rounds; the mask names those that are left.
#include "../programs/check.cuh"

__global__ void spread(const int* counts, int* out) {
  const int lane = threadIdx.x;
  int got = 0;
  for (int i = 0; i < counts[lane]; ++i) {
#ifdef BUG
    got += __shfl_sync(0xffffffff, i + lane, 31);  // expect: warp_sync
#else
    got += __shfl_sync(__activemask(), i + lane, lane);
#endif
  }
  out[lane] = got;
}

int main() {
  Array<int> counts(32), out(32);
  for (int i = 0; i < 32; ++i) counts[i] = 32 - i;
  counts.up();
  spread<<<1, 32>>>(counts.device, out.device);
#ifndef BUG
  out.down();
  CHECK(out[31] == 31);
#endif
  return ok();
}
