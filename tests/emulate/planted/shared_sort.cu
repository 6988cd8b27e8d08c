// SPDX-License-Identifier: Apache-2.0
// Barriers between the phases of an odd-even sort.
#include "../programs/check.cuh"

__global__ void sort(int* data) {
  __shared__ int kept[128];
  const int t = threadIdx.x;
  kept[2 * t] = data[2 * t];
  kept[2 * t + 1] = data[2 * t + 1];
  __syncthreads();
  for (int phase = 0; phase < 128; ++phase) {
    const int i = 2 * t + phase % 2;
    if (i + 1 < 128) {
      const int a = kept[i], b = kept[i + 1];  // expect: race
      kept[i] = min(a, b);                     // expect: race
      kept[i + 1] = max(a, b);                 // expect: race
    }
#ifndef BUG
    __syncthreads();
#else
    __syncwarp();  // enough within each warp
#endif
  }
  data[2 * t] = kept[2 * t];
  data[2 * t + 1] = kept[2 * t + 1];
}

int main() {
  Array<int> data(128);
  for (int i = 0; i < 128; ++i) data[i] = 37 * i % 128;
  data.up();
  sort<<<1, 64>>>(data.device);
  return ok();
}
