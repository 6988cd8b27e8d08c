// SPDX-License-Identifier: Apache-2.0
// A vote of whoever has not left the loop yet, with a mask of all lanes that entered it.
#include "../programs/check.cuh"

__global__ void count(unsigned* out) {
  const int t = threadIdx.x;
  unsigned votes = 0;
#ifdef BUG
  for (int i = 0; i < t % 4; ++i) votes += __ballot_sync(0xffffffffu, i < 2);  // expect: warp_sync
#else
  for (int i = 0; i < 3; ++i) {
    const unsigned vote = __ballot_sync(0xffffffffu, i < t % 4);
    if (i < t % 4) votes += vote;
  }
#endif
  out[t] = votes;
}

int main() {
  Array<unsigned> out(32);
  count<<<1, 32>>>(out.device);
  return ok();
}
