// SPDX-License-Identifier: Apache-2.0
// A sort by neighbors: two phases in a round.
#include "check.cuh"

__global__ void sort(float* list, int n) {
  __shared__ float v[96];
  const int t = threadIdx.x;
  v[t] = list[t];
  __syncthreads();
  for (int round = 0; round < n; ++round) {
    const int i = 2 * t + round % 2;
    if (i + 1 < n && v[i] > v[i + 1]) {
      const float low = v[i + 1];
      v[i + 1] = v[i];
      v[i] = low;
    }
#ifndef BUG
    __syncthreads();
#endif
  }
  list[t] = v[t];
}

int main() {
  Array<float> list(96);
  for (int i = 0; i < 96; ++i) list[i] = i * 31 % 97;
  list.up();
  sort<<<1, 96>>>(list.device, 96);
  list.down();
  for (int i = 1; i < 96; ++i) CHECK(list[i - 1] <= list[i]);
  return ok();
}
