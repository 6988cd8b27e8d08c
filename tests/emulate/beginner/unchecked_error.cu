// SPDX-License-Identifier: Apache-2.0
// An allocation that fails, unseen; the kernel gets what the pointer held.
#include <cstdio>

__global__ void fill(float* a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] = i;  // expect: out_of_bounds
}

int main() {
  const int n = 100;
  float* a = nullptr;
  cudaMalloc(&a, n * sizeof(float) << 40);  // expect: api_call
  fill<<<1, 128>>>(a, n);
  cudaDeviceSynchronize();
  return 0;
}
// says: never queried its error
