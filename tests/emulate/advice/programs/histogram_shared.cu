// SPDX-License-Identifier: Apache-2.0
// A histogram of each block in shared memory.
#include "check.cuh"

__global__ void histogram(const int* data, unsigned int* bins, int n) {
  __shared__ unsigned int local[16];
  if (threadIdx.x < 16) local[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
#ifdef BUG
    local[data[i] % 16]++;
#else
    atomicAdd(&local[data[i] % 16], 1u);
#endif
  }
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}

int main() {
  const int n = 700;
  Array<int> data(n);
  Array<unsigned int> bins(16);
  for (int i = 0; i < n; ++i) data[i] = i * i;
  data.up();
  histogram<<<3, 96>>>(data.device, bins.device, n);
  bins.down();
  unsigned int expected[16] = {};
  for (int i = 0; i < n; ++i) ++expected[data[i] % 16];
  for (int b = 0; b < 16; ++b) CHECK(bins[b] == expected[b]);
  return ok();
}
