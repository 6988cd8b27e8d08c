// SPDX-License-Identifier: Apache-2.0
// The warp that loads waits, and the one that only reads does not.
#include "check.cuh"

__global__ void turn(int* out, const int* in) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  if (t < 32) {
    s[t] = in[t];            // expect: race
    s[t + 32] = in[t + 32];  // expect: race
#ifdef BUG
    __syncthreads();  // of the first warp alone
#endif
  }
#ifndef BUG
  __syncthreads();
#endif
  out[t] = s[63 - t];  // expect: race
}

int main() {
  Array<int> in(64), out(64);
  for (int i = 0; i < 64; i++) in[i] = i;
  in.up();
  turn<<<1, 64>>>(out.device, in.device);
  out.down();
  for (int i = 0; i < 64; i++) CHECK(out[i] == 63 - i);
  return ok();
}
// says: the barrier of line 12 is reached by 32 of 64 threads
