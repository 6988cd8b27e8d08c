// SPDX-License-Identifier: Apache-2.0
// The number of blocks is rounded down: the last elements are not computed.
#include <cstdio>
#include <vector>

__global__ void twice(const float* a, float* b, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) b[i] = 2 * a[i];
}

int main() {
  const int n = 1000;
  std::vector<float> host(n, 1.f);
  float *a, *b;
  cudaMalloc(&a, n * sizeof(float));
  cudaMalloc(&b, n * sizeof(float));
  cudaMemcpy(a, host.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  twice<<<n / 256, 256>>>(a, b, n);  // expect: uninitialized
  cudaMemcpy(host.data(), b, n * sizeof(float), cudaMemcpyDeviceToHost);
  std::printf("%g\n", host[999]);
  return 0;
}
// says: (1000 + 255) / 256
