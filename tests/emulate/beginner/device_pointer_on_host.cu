// SPDX-License-Identifier: Apache-2.0
// Host code reads the device's array.
#include <cstdio>

__global__ void fill(float* a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] = i;
}

int main() {
  const int n = 100;
  float* a;
  cudaMalloc(&a, n * sizeof(float));
  fill<<<1, 128>>>(a, n);
  cudaDeviceSynchronize();
  std::printf("%g\n", a[0]);  // expect: host_access
  return 0;
}
// says: cudaMemcpy
