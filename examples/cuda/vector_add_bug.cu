// SPDX-License-Identifier: Apache-2.0
// Bug: no guard for the threads of the last block that have no element.
// rung emulate: out_of_bounds in line 9
#include <cstdio>
#include <vector>

__global__ void vector_add(const float* x, const float* y, float* z, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  z[i] = x[i] + y[i];
}

int main() {
  const int n = 1000, threads = 256;
  const size_t bytes = n * sizeof(float);
  std::vector<float> x(n), y(n), z(n);
  for (int i = 0; i < n; ++i) {
    x[i] = 0.5f * i;
    y[i] = 100.0f - i;
  }
  float *x_device, *y_device, *z_device;
  cudaMalloc(&x_device, bytes);
  cudaMalloc(&y_device, bytes);
  cudaMalloc(&z_device, bytes);
  cudaMemcpy(x_device, x.data(), bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(y_device, y.data(), bytes, cudaMemcpyHostToDevice);

  const int blocks = (n + threads - 1) / threads;
  vector_add<<<blocks, threads>>>(x_device, y_device, z_device, n);
  cudaMemcpy(z.data(), z_device, bytes, cudaMemcpyDeviceToHost);

  int wrong = 0;
  for (int i = 0; i < n; ++i) wrong += z[i] != x[i] + y[i];
  std::printf("vector_add_bug: %d wrong: %s\n", wrong, wrong == 0 ? "PASS" : "FAIL");
  cudaFree(x_device);
  cudaFree(y_device);
  cudaFree(z_device);
  return wrong == 0 ? 0 : 1;
}
