// SPDX-License-Identifier: Apache-2.0
// The clock is read before the kernel has ended.
#include <chrono>
#include <cstdio>

__global__ void fill(float* a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] = i;
}

int main() {
  const int n = 100;
  float* a;
  cudaMalloc(&a, n * sizeof(float));
  const auto begin = std::chrono::steady_clock::now();
  fill<<<1, 128>>>(a, n);
  const auto end = std::chrono::steady_clock::now();
  std::printf("%d\n", end > begin);
  cudaFree(a);
  return 0;
}
