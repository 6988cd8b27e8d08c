// SPDX-License-Identifier: Apache-2.0
// Each column divided by its first element. y might alias x, so that divide_plain loads x[column]
// again after each store. __restrict__ promises that they do not alias: nvcc then keeps it in a
// register. A variable does so everywhere, on the simulated GPU too, and shows what is saved.
#include <cmath>
#include <cstdio>
#include <vector>

__global__ void divide_plain(const float* x, float* y, int height, int width) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= width) return;
  for (int row = 0; row < height; ++row) {
    y[row * width + column] = x[row * width + column] / x[column];
  }
}

__global__ void divide(const float* __restrict__ x, float* __restrict__ y, int height, int width) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= width) return;
  const float first = x[column];
  for (int row = 0; row < height; ++row) y[row * width + column] = x[row * width + column] / first;
}

int main() {
  const int height = 32, width = 100, n = height * width;
  std::vector<float> x(n), y(n);
  for (int i = 0; i < n; ++i) x[i] = i % 19 + 1;
  float *x_device, *y_device;
  cudaMalloc(&x_device, n * sizeof(float));
  cudaMalloc(&y_device, n * sizeof(float));
  cudaMemcpy(x_device, x.data(), n * sizeof(float), cudaMemcpyHostToDevice);

  divide_plain<<<(width + 63) / 64, 64>>>(x_device, y_device, height, width);
  divide<<<(width + 63) / 64, 64>>>(x_device, y_device, height, width);
  cudaMemcpy(y.data(), y_device, n * sizeof(float), cudaMemcpyDeviceToHost);

  int wrong = 0;
  for (int i = 0; i < n; ++i) wrong += !(std::fabs(y[i] - x[i] / x[i % width]) < 1e-6f);
  std::printf("aliasing: %d wrong: %s\n", wrong, wrong == 0 ? "PASS" : "FAIL");
  cudaFree(x_device);
  cudaFree(y_device);
  return wrong == 0 ? 0 : 1;
}
