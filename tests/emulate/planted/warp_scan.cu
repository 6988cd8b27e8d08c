// SPDX-License-Identifier: Apache-2.0
// Each round of a warp's scan reads before it writes, and tells so.
#include "../programs/check.cuh"

__global__ void scan(int* data) {
  __shared__ int kept[32];
  const int t = threadIdx.x;
  kept[t] = data[t];
  __syncwarp();
  for (int step = 1; step < 32; step *= 2) {
    const int before = t >= step ? kept[t - step] : 0;  // expect: race
#ifndef BUG
    __syncwarp();
#endif
    kept[t] += before;  // expect: race
    __syncwarp();
  }
  data[t] = kept[t];
}

int main() {
  Array<int> data(32);
  for (int i = 0; i < 32; ++i) data[i] = i + 1;
  data.up();
  scan<<<1, 32>>>(data.device);
  return ok();
}
