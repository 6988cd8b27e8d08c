// SPDX-License-Identifier: Apache-2.0
// Both copies count elements instead of bytes.
#include <cstdio>
#include <vector>

__global__ void twice(const float* a, float* b, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) b[i] = 2 * a[i];  // expect: uninitialized
}

int main() {
  const int n = 100;
  std::vector<float> host(n, 1.f);
  float *a, *b;
  cudaMalloc(&a, n * sizeof(float));
  cudaMalloc(&b, n * sizeof(float));
  cudaMemcpy(a, host.data(), n, cudaMemcpyHostToDevice);
  twice<<<1, 128>>>(a, b, n);
  cudaMemcpy(host.data(), b, n, cudaMemcpyDeviceToHost);  // expect: api_call
  std::printf("%g\n", host[99]);
  return 0;
}
// says: line 17 copies 100 of the 400 bytes: `* sizeof(float)` is missing
// says: `* sizeof(float)` is missing in cudaMemcpy(host.data(), b, n, cudaMemcpyDeviceToHost)
