// SPDX-License-Identifier: Apache-2.0
// A division of integers gives no block at all.
#include <cstdio>
#include <vector>

__global__ void twice(float* a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] *= 2;
}

int main() {
  const int n = 100;
  float* a;
  cudaMalloc(&a, n * sizeof(float));
  cudaMemset(a, 0, n * sizeof(float));
  twice<<<n / 256, 256>>>(a, n);  // expect: launch
  cudaDeviceSynchronize();
  return 0;
}
// says: round the number of blocks up
