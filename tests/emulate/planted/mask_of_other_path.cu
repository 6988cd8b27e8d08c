// SPDX-License-Identifier: Apache-2.0
// A full mask in a branch that half of the lanes take, and no barrier of the warp behind it: the
// shuffle there meets the one that the others come to next, and all that follow are shifted.
#include "../programs/check.cuh"

__global__ void sum(int* out) {
  const int t = threadIdx.x;
  int v = t;
#ifdef BUG
  if (t < 16) v += __shfl_xor_sync(0xffffffffu, v, 8);
#else
  const unsigned low = __ballot_sync(0xffffffffu, t < 16);
  if (t < 16) v += __shfl_xor_sync(low, v, 8);
#endif
  for (int step = 16; step > 0; step /= 2) {
    v += __shfl_xor_sync(0xffffffffu, v, step);  // expect: warp_sync
  }
  out[t] = v;
}

/// Calls at two places that meet are none, as often as they do so.
__global__ void halves(int* out) {
  const int t = threadIdx.x;
  int v = t;
  for (int round = 0; round < 3; ++round) {
    if (t % 2 == round % 2) {
      v += __shfl_xor_sync(0xffffffffu, v, 1);
    } else {
      v += 3 * __shfl_xor_sync(0xffffffffu, 2 * v, 1);
    }
  }
  if (t >= 16) return;
  out[t] = __shfl_sync(0xffffffffu, v, 15 - t);
}

int main() {
  Array<int> out(32);
  sum<<<1, 32>>>(out.device);
  halves<<<1, 32>>>(out.device);
  return ok();
}
