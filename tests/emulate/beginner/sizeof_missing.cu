// SPDX-License-Identifier: Apache-2.0
// The allocation counts elements instead of bytes.
#include <cstdio>

__global__ void fill(float* a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] = i;  // expect: out_of_bounds
}

int main() {
  const int n = 200;
  float* a;
  cudaMalloc(&a, n);
  fill<<<1, 256>>>(a, n);
  cudaDeviceSynchronize();
  return 0;
}
// says: line 13 allocates 200 bytes, and 200 elements of float need 800
// never: guard
