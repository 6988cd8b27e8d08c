// SPDX-License-Identifier: Apache-2.0
// A tail of a warp is summed among the lanes that take part: others contribute zero.
#include "../programs/check.cuh"

__global__ void sum(const int* in, int* out, int n) {
  const int i = threadIdx.x;
#ifdef BUG
  if (i < n) {
    int v = in[i];
    for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffff, v, d);  // expect: warp_sync
    if (i == 0) *out = v;
  }
#else
  int v = i < n ? in[i] : 0;
  for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffff, v, d);
  if (i == 0) *out = v;
#endif
}

int main() {
  Array<int> in(32), out(1);
  for (int i = 0; i < 32; ++i) in[i] = 1;
  in.up();
  sum<<<1, 32>>>(in.device, out.device, 20);
#ifndef BUG
  out.down();
  CHECK(out[0] == 20);
#endif
  return ok();
}
