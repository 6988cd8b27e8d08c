// SPDX-License-Identifier: Apache-2.0
// A private histogram a block, then one of all.
#include "check.cuh"

__global__ void histogram(const unsigned char* data, int n, unsigned* bins) {
  __shared__ unsigned mine[64];
  for (int i = threadIdx.x; i < 64; i += blockDim.x) mine[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    atomicAdd(&mine[data[i] / 4], 1u);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < 64; i += blockDim.x) {
    if (mine[i] != 0) atomicAdd(&bins[i], mine[i]);
  }
}

int main() {
  const int n = 5000;
  Array<unsigned char> data(n);
  Array<unsigned> bins(64);
  unsigned expected[64] = {};
  for (int i = 0; i < n; ++i) {
    data[i] = static_cast<unsigned char>(i * 37 + i / 3);
    ++expected[data[i] / 4];
  }
  data.up();
  histogram<<<4, 96>>>(data.device, n, bins.device);
  bins.down();
  for (int i = 0; i < 64; ++i) CHECK(bins[i] == expected[i]);
  return ok();
}
