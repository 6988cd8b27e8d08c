// SPDX-License-Identifier: Apache-2.0
// A bitonic sort of a block without the barrier after each exchange.
#include "check.cuh"

__global__ void sort(int* keys) {
  __shared__ int s[128];
  const unsigned t = threadIdx.x;
  s[t] = keys[t];
  __syncthreads();
  for (unsigned k = 2; k <= 128; k *= 2) {
    for (unsigned j = k / 2; j > 0; j /= 2) {
      const unsigned other = t ^ j;
      if (other > t) {
        const bool up = (t & k) == 0;
        const int a = s[t], b = s[other];
        if ((a > b) == up) {
          s[t] = b;
          s[other] = a;
        }
      }
#ifndef BUG
      __syncthreads();
#endif
    }
  }
  keys[t] = s[t];
}

int main() {
  Array<int> keys(128);
  for (int i = 0; i < 128; ++i) keys[i] = i * 73 % 257;
  keys.up();
  sort<<<1, 128>>>(keys.device);
  keys.down();
  for (int i = 1; i < 128; ++i) CHECK(keys[i - 1] <= keys[i]);
  return ok();
}
