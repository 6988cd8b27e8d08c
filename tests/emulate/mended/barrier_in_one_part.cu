// SPDX-License-Identifier: Apache-2.0
// Two of four warps wait in their part of an if before the next round, the others do not.
#include "check.cuh"

__global__ void rounds(int* out) {
  __shared__ int s[4][32];
  const int x = threadIdx.x, y = threadIdx.y;
  for (int k = 0; k < 4; k++) {
    s[y][x] = x + k;  // expect: race
    __syncthreads();
    const int v = s[3 - y][x];  // expect: race
    if (y < 2) {
      out[(k * 4 + y) * 32 + x] = v;
#ifdef BUG
      __syncthreads();
#endif
    } else {
      out[(k * 4 + y) * 32 + x] = -v;
    }
#ifndef BUG
    __syncthreads();
#endif
  }
}

int main() {
  Array<int> out(512);
  rounds<<<1, dim3(32, 4)>>>(out.device);
  out.down();
#ifndef BUG
  for (int i = 0; i < 512; ++i) {
    const int value = i % 32 + i / 128;
    CHECK(out[i] == (i / 32 % 4 < 2 ? value : -value));
  }
#endif
  return ok();
}
// says: is reached by 64 of 128 threads
