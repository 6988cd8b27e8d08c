// SPDX-License-Identifier: Apache-2.0
// Bug: in place, though __restrict__ promises that x and y do not alias.
// rung emulate: overlap in line 12
#include <cmath>
#include <cstdio>
#include <vector>

__global__ void divide(const float* __restrict__ x, float* __restrict__ y, int height, int width) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= width) return;
  for (int row = 0; row < height; ++row) {
    y[row * width + column] = x[row * width + column] / x[column];
  }
}

int main() {
  const int height = 32, width = 100, n = height * width;
  std::vector<float> x(n), y(n);
  for (int i = 0; i < n; ++i) x[i] = i % 19 + 1;
  float* x_device;
  cudaMalloc(&x_device, n * sizeof(float));
  cudaMemcpy(x_device, x.data(), n * sizeof(float), cudaMemcpyHostToDevice);

  divide<<<(width + 63) / 64, 64>>>(x_device, x_device, height, width);
  cudaMemcpy(y.data(), x_device, n * sizeof(float), cudaMemcpyDeviceToHost);

  int wrong = 0;
  for (int i = 0; i < n; ++i) wrong += !(std::fabs(y[i] - x[i] / x[i % width]) < 1e-6f);
  std::printf("aliasing_bug: %d wrong: %s\n", wrong, wrong == 0 ? "PASS" : "FAIL");
  cudaFree(x_device);
  return wrong == 0 ? 0 : 1;
}
