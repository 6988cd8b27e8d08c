// SPDX-License-Identifier: Apache-2.0
// A vote of the lanes that take part.
#include "../programs/check.cuh"

__global__ void vote(unsigned* out) {
  const int t = threadIdx.x;
#ifdef BUG
  if (t % 2 == 0) out[t] = __ballot_sync(0x0000ffffu, t > 3);  // expect: warp_sync
#else
  if (t % 2 == 0) out[t] = __ballot_sync(0x55555555u, t > 3);
#endif
}

int main() {
  Array<unsigned> out(32);
  vote<<<1, 32>>>(out.device);
  return ok();
}
