// SPDX-License-Identifier: Apache-2.0
// Three of four warps wait before the next round overwrites what the fourth still reads.
#include "check.cuh"

__global__ void rounds(int* out, int count) {
  __shared__ int row[128];
  const int t = threadIdx.x, warp = t / 32;
  int sum = 0;
  for (int k = 0; k < count; ++k) {
    row[t] = t + k;  // expect: race
    __syncthreads();
    sum += row[127 - t];  // expect: race
#ifdef BUG
    if (warp != 3) {
      __syncthreads();
    }
#else
    __syncthreads();
#endif
  }
  out[t] = sum + 0 * warp;
}

int main() {
  Array<int> out(128);
  rounds<<<1, 128>>>(out.device, 3);
  out.down();
#ifndef BUG
  for (int t = 0; t < 128; ++t) CHECK(out[t] == 3 * (127 - t) + 3);
#endif
  return ok();
}
// says: is reached by 96 of 128 threads
