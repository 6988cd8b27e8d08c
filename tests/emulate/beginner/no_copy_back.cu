// SPDX-License-Identifier: Apache-2.0
// The result stays on the device: nobody copies it to the host.
#include <cstdio>
#include <vector>

__global__ void twice(const float* a, float* b, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) b[i] = 2 * a[i];
}

int main() {
  const int n = 100;
  std::vector<float> host(n, 1.f), result(n);
  float *a, *b;
  cudaMalloc(&a, n * sizeof(float));
  cudaMalloc(&b, n * sizeof(float));
  cudaMemcpy(a, host.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  twice<<<1, 128>>>(a, b, n);  // expect: unused
  cudaDeviceSynchronize();
  std::printf("%g\n", result[0]);
  return 0;
}
// says: cudaMemcpyDeviceToHost
