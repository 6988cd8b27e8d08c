// SPDX-License-Identifier: Apache-2.0
// Bug: a warp whose lanes wait at two barriers, one in each branch.
// rung emulate: barrier in line 16
#include <cstdio>
#include <vector>

constexpr int RADIUS = 2, MASK = 2 * RADIUS + 1, TILE = 128;
__constant__ float mask[MASK];

__global__ void convolve(const float* x, float* y, int n) {
  __shared__ float tile[TILE + 2 * RADIUS];
  const int t = threadIdx.x, i = blockIdx.x * TILE + t, left = i - RADIUS, right = left + TILE;
  tile[t] = left >= 0 && left < n ? x[left] : 0;
  if (t < 2 * RADIUS) {
    tile[t + TILE] = right < n ? x[right] : 0;
    __syncthreads();
  } else {
    __syncthreads();
  }
  if (i < n) {
    float sum = 0;
    for (int j = 0; j < MASK; ++j) sum += mask[j] * tile[t + j];
    y[i] = sum;
  }
}

int main() {
  const int n = 1000;
  const float weights[MASK] = {1, 4, 6, 4, 1};
  std::vector<float> x(n), y(n);
  for (int i = 0; i < n; ++i) x[i] = i * 7 % 31;
  float *x_device, *y_device;
  cudaMalloc(&x_device, n * sizeof(float));
  cudaMalloc(&y_device, n * sizeof(float));
  cudaMemcpy(x_device, x.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpyToSymbol(mask, weights, sizeof(weights));

  convolve<<<(n + TILE - 1) / TILE, TILE>>>(x_device, y_device, n);
  cudaMemcpy(y.data(), y_device, n * sizeof(float), cudaMemcpyDeviceToHost);

  int wrong = 0;
  for (int i = 0; i < n; ++i) {
    float sum = 0;
    for (int j = 0; j < MASK; ++j) {
      const int at = i + j - RADIUS;
      if (at >= 0 && at < n) sum += weights[j] * x[at];
    }
    wrong += y[i] != sum;  // whole numbers: exact
  }
  std::printf("convolution_1d_bug: %d wrong: %s\n", wrong, wrong == 0 ? "PASS" : "FAIL");
  cudaFree(x_device);
  cudaFree(y_device);
  return wrong == 0 ? 0 : 1;
}
