// SPDX-License-Identifier: Apache-2.0
// One bit a pass: a block scans the bit, and scatters.
#include "check.cuh"

__global__ void sort(unsigned* data) {
  __shared__ unsigned keys[256];
  __shared__ int sums[256];
  const int t = threadIdx.x;
  unsigned key = data[t];
  for (int bit = 0; bit < 16; ++bit) {
    const int zero = (key >> bit & 1) == 0;
    sums[t] = zero;
    __syncthreads();
    for (int step = 1; step < 256; step *= 2) {
      const int before = t >= step ? sums[t - step] : 0;
      __syncthreads();
      sums[t] += before;
      __syncthreads();
    }
    const int zeros = sums[255];
    keys[zero ? sums[t] - 1 : zeros + t - sums[t]] = key;
    __syncthreads();
    key = keys[t];
  }
  data[t] = key;
}

int main() {
  Array<unsigned> data(256);
  for (int i = 0; i < 256; ++i) data[i] = (i * 40503u) & 0xffffu;
  data.up();
  sort<<<1, 256>>>(data.device);
  data.down();
  for (int i = 1; i < 256; ++i) CHECK(data[i - 1] <= data[i]);
  return ok();
}
