// SPDX-License-Identifier: Apache-2.0
// Managed memory is read before the kernel is known to have ended.
#include <cstdio>

__global__ void fill(float* a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] = i;
}

int main() {
  const int n = 100;
  float* a;
  cudaMallocManaged(&a, n * sizeof(float));
  fill<<<1, 128>>>(a, n);
  std::printf("%g\n", a[0]);  // expect: host_access
  cudaFree(a);
  return 0;
}
// says: cudaDeviceSynchronize
