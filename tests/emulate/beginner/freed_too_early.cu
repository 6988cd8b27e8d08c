// SPDX-License-Identifier: Apache-2.0
// The array is freed before it is copied to the host.
#include <cstdio>
#include <vector>

__global__ void fill(float* a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] = i;
}

int main() {
  const int n = 100;
  std::vector<float> host(n);
  float* a;
  cudaMalloc(&a, n * sizeof(float));
  fill<<<1, 128>>>(a, n);
  cudaFree(a);
  cudaMemcpy(host.data(), a, n * sizeof(float), cudaMemcpyDeviceToHost);  // expect: api_call
  std::printf("%g\n", host[0]);
  return 0;
}
// says: was freed
