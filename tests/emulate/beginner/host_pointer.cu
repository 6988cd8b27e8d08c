// SPDX-License-Identifier: Apache-2.0
// A kernel gets a pointer to memory of the host.
#include <cstdio>
#include <cstdlib>

__global__ void fill(float* a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] = i;  // expect: out_of_bounds
}

int main() {
  const int n = 100;
  float* a = static_cast<float*>(std::malloc(n * sizeof(float)));
  fill<<<1, 128>>>(a, n);
  cudaDeviceSynchronize();
  std::printf("%g\n", a[0]);
  std::free(a);
  return 0;
}
// says: cudaMalloc
