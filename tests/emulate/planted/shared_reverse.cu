// SPDX-License-Identifier: Apache-2.0
// A barrier between writing a shared array and reading it backwards.
#include "../programs/check.cuh"

__global__ void reverse(int* data) {
  __shared__ int kept[64];
  kept[threadIdx.x] = data[threadIdx.x];  // expect: race
#ifndef BUG
  __syncthreads();
#endif
  data[threadIdx.x] = kept[63 - threadIdx.x];  // expect: race
}

int main() {
  Array<int> data(64);
  for (int i = 0; i < 64; ++i) data[i] = i;
  data.up();
  reverse<<<1, 64>>>(data.device);
  data.down();
#ifndef BUG
  for (int i = 0; i < 64; ++i) CHECK(data[i] == 63 - i);
#endif
  return ok();
}
