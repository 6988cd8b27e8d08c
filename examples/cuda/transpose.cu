// SPDX-License-Identifier: Apache-2.0
// y = x transposed through a padded tile: both global accesses are coalesced, no bank conflicts.
#include <cstdio>
#include <vector>

constexpr int TILE = 32, ROWS = 8;  // a block of 32 x 8 threads moves a tile of 32 x 32

__global__ void transpose(const float* x, float* y, int height, int width) {
  __shared__ float tile[TILE][TILE + 1];
  const int column = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE + threadIdx.y;
  for (int i = 0; i < TILE; i += ROWS) {
    if (row + i < height && column < width) {
      tile[threadIdx.y + i][threadIdx.x] = x[(row + i) * width + column];
    }
  }
  __syncthreads();
  const int to_column = blockIdx.y * TILE + threadIdx.x, to_row = blockIdx.x * TILE + threadIdx.y;
  for (int i = 0; i < TILE; i += ROWS) {
    if (to_row + i < width && to_column < height) {
      y[(to_row + i) * height + to_column] = tile[threadIdx.x][threadIdx.y + i];
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
  std::printf("transpose: %d wrong: %s\n", wrong, wrong == 0 ? "PASS" : "FAIL");
  cudaFree(x_device);
  cudaFree(y_device);
  return wrong == 0 ? 0 : 1;
}
