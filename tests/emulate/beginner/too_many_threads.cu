// SPDX-License-Identifier: Apache-2.0
// A block of 2048 threads, and nobody asks whether the launch has worked.
#include <cstdio>
#include <vector>

__global__ void twice(float* a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] *= 2;
}

int main() {
  const int n = 2048;
  float* a;
  cudaMalloc(&a, n * sizeof(float));
  cudaMemset(a, 0, n * sizeof(float));
  twice<<<1, 2048>>>(a, n);  // expect: launch
  cudaDeviceSynchronize();
  return 0;
}
// says: 1024
