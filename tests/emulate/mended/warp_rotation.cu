// SPDX-License-Identifier: Apache-2.0
// Lanes of each warp exchange values in a row of shared memory of their own.
#include "check.cuh"

__global__ void rotate(int* out) {
  __shared__ int rows[4][32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  rows[warp][lane] = threadIdx.x;  // expect: race
#ifndef BUG
  __syncwarp();
#endif
  out[threadIdx.x] = rows[warp][(lane + 1) % 32];  // expect: race
}

int main() {
  Array<int> out(128);
  rotate<<<1, 128>>>(out.device);
  out.down();
  for (int t = 0; t < 128; ++t) CHECK(out[t] == t / 32 * 32 + (t + 1) % 32);
  return ok();
}
// says: __syncwarp()
