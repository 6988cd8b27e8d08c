// SPDX-License-Identifier: Apache-2.0
// Bug: threads increment the block's bins without atomics.
// rung emulate: race in line 14
#include <cstdio>
#include <vector>

constexpr int BINS = 256;

__global__ void histogram(const unsigned char* x, unsigned* counts, int n) {
  __shared__ unsigned own[BINS];
  own[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    ++own[x[i]];
  }
  __syncthreads();
  atomicAdd(&counts[threadIdx.x], own[threadIdx.x]);
}

int main() {
  const int n = 10000;
  std::vector<unsigned char> x(n);
  std::vector<unsigned> counts(BINS), wanted(BINS);
  for (int i = 0; i < n; ++i) ++wanted[x[i] = (i / 3) * (i % 29) % BINS];
  unsigned char* x_device;
  unsigned* counts_device;
  cudaMalloc(&x_device, n);
  cudaMalloc(&counts_device, BINS * sizeof(unsigned));
  cudaMemcpy(x_device, x.data(), n, cudaMemcpyHostToDevice);
  cudaMemset(counts_device, 0, BINS * sizeof(unsigned));

  histogram<<<4, BINS>>>(x_device, counts_device, n);
  cudaMemcpy(counts.data(), counts_device, BINS * sizeof(unsigned), cudaMemcpyDeviceToHost);

  int wrong = 0;
  for (int bin = 0; bin < BINS; ++bin) wrong += counts[bin] != wanted[bin];
  std::printf("histogram_bug: %d wrong: %s\n", wrong, wrong == 0 ? "PASS" : "FAIL");
  cudaFree(x_device);
  cudaFree(counts_device);
  return wrong == 0 ? 0 : 1;
}
