// SPDX-License-Identifier: Apache-2.0
// Bug: right, but slow: a warp stores one column of y, 32 sectors instead of 4.
// rung emulate: nothing; --annotate shows the sectors of line 13
#include <cstdio>
#include <vector>

constexpr int TILE = 32, ROWS = 8;  // a block of 32 x 8 threads moves a tile of 32 x 32

__global__ void transpose(const float* x, float* y, int height, int width) {
  const int column = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE + threadIdx.y;
  for (int i = 0; i < TILE; i += ROWS) {
    if (row + i < height && column < width) {
      y[column * height + row + i] = x[(row + i) * width + column];
    }
  }
}

int main() {
  const int height = 128, width = 96;
  std::vector<float> x(height * width), y(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = i;
  const size_t bytes = x.size() * sizeof(float);
  float *x_device, *y_device;
  cudaMalloc(&x_device, bytes);
  cudaMalloc(&y_device, bytes);
  cudaMemcpy(x_device, x.data(), bytes, cudaMemcpyHostToDevice);

  const dim3 block(TILE, ROWS), grid((width + TILE - 1) / TILE, (height + TILE - 1) / TILE);
  transpose<<<grid, block>>>(x_device, y_device, height, width);
  cudaMemcpy(y.data(), y_device, bytes, cudaMemcpyDeviceToHost);

  int wrong = 0;
  for (int row = 0; row < height; ++row) {
    for (int column = 0; column < width; ++column) {
      wrong += y[column * height + row] != x[row * width + column];
    }
  }
  std::printf("transpose_bug: %d wrong: %s\n", wrong, wrong == 0 ? "PASS" : "FAIL");
  cudaFree(x_device);
  cudaFree(y_device);
  return wrong == 0 ? 0 : 1;
}
