// SPDX-License-Identifier: Apache-2.0
// A stencil that overwrites its input.
#include <cstdio>
#include <vector>

__global__ void smooth(float* a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > 0 && i < n - 1) a[i] = (a[i - 1] + a[i] + a[i + 1]) / 3;  // expect: race
}

int main() {
  const int n = 1000;
  float* a;
  cudaMalloc(&a, n * sizeof(float));
  cudaMemset(a, 0, n * sizeof(float));
  smooth<<<4, 256>>>(a, n);
  cudaDeviceSynchronize();
  return 0;
}
// says: another array
