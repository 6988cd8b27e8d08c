// SPDX-License-Identifier: Apache-2.0
// Shared bins that some threads count in before others have cleared them.
#include "check.cuh"

__global__ void digits(const int* keys, int* counts, int n) {
  __shared__ int bins[10];
  const int t = threadIdx.x;
  if (t < 10) bins[t] = 0;
#ifndef BUG
  __syncthreads();
#endif
  for (int i = t; i < n; i += blockDim.x) atomicAdd(&bins[keys[i] % 10], 1);
  __syncthreads();
  if (t < 10) counts[t] = bins[t];
}

int main() {
  const int n = 400;
  Array<int> keys(n), counts(10);
  int expected[10] = {};
  for (int i = 0; i < n; ++i) ++expected[(keys[i] = i * i) % 10];
  keys.up();
  digits<<<1, 128>>>(keys.device, counts.device, n);
  counts.down();
  for (int d = 0; d < 10; ++d) CHECK(counts[d] == expected[d]);
  return ok();
}
