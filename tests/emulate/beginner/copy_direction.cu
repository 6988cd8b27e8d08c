// SPDX-License-Identifier: Apache-2.0
// The direction of the copy back is that of the copy there.
#include <cstdio>
#include <vector>

__global__ void twice(float* a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] *= 2;
}

int main() {
  const int n = 100;
  std::vector<float> host(n, 1.f);
  float* a;
  cudaMalloc(&a, n * sizeof(float));
  cudaMemcpy(a, host.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  twice<<<1, 128>>>(a, n);
  cudaMemcpy(host.data(), a, n * sizeof(float), cudaMemcpyHostToDevice);  // expect: api_call
  std::printf("%g\n", host[0]);
  cudaFree(a);
  return 0;
}
// says: cudaMemcpyDeviceToHost
