// SPDX-License-Identifier: Apache-2.0
// Both barriers of a scan in one buffer.
#include "../programs/check.cuh"

__global__ void scan(int* data) {
  __shared__ int kept[64];
  const int t = threadIdx.x;
  kept[t] = data[t];
  for (int step = 1; step < 64; step *= 2) {
    __syncthreads();
    int sum = kept[t];
    if (t >= step) sum += kept[t - step];  // expect: race
#ifndef BUG
    __syncthreads();
#endif
    kept[t] = sum;  // expect: race
  }
  data[t] = kept[t];
}

int main() {
  Array<int> data(64);
  for (int i = 0; i < 64; ++i) data[i] = i + 1;
  data.up();
  scan<<<1, 64>>>(data.device);
  data.down();
#ifndef BUG
  for (int i = 0; i < 64; ++i) CHECK(data[i] == (i + 1) * (i + 2) / 2);
#endif
  return ok();
}
