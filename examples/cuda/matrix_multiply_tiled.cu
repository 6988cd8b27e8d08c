// SPDX-License-Identifier: Apache-2.0
// C = A B through tiles in shared memory: each loaded element is used TILE times.
#include <cstdio>
#include <vector>

// `rung emulate -D TILE_WIDTH=32 -D SHAPE=100,92,141 --counters matrix_multiply_tiled.cu` tells
// what threads beyond the edges of C cost: 3,932,160 operations in place of 2,594,400.
#ifndef TILE_WIDTH
#define TILE_WIDTH 16
#endif
#ifndef SHAPE
#define SHAPE 80, 69, 41
#endif
constexpr int TILE = TILE_WIDTH;
constexpr int shape[] = {SHAPE};  // rows and columns of C, and what is summed over

__global__ void multiply(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float a_tile[TILE][TILE], b_tile[TILE][TILE];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int column = blockIdx.x * TILE + tx, row = blockIdx.y * TILE + ty;
  float sum = 0;
  for (int first = 0; first < k; first += TILE) {
    a_tile[ty][tx] = row < m && first + tx < k ? a[row * k + first + tx] : 0;
    b_tile[ty][tx] = first + ty < k && column < n ? b[(first + ty) * n + column] : 0;
    __syncthreads();  // both tiles are complete
    for (int i = 0; i < TILE; ++i) sum += a_tile[ty][i] * b_tile[i][tx];
    __syncthreads();  // no thread reads them any more
  }
  if (row < m && column < n) c[row * n + column] = sum;
}

int main() {
  const int m = shape[0], n = shape[1], k = shape[2];
  std::vector<float> a(m * k), b(k * n), c(m * n);
  for (int i = 0; i < m * k; ++i) a[i] = i % 7 - 3;
  for (int i = 0; i < k * n; ++i) b[i] = i % 5 - 2;
  float *a_device, *b_device, *c_device;
  cudaMalloc(&a_device, m * k * sizeof(float));
  cudaMalloc(&b_device, k * n * sizeof(float));
  cudaMalloc(&c_device, m * n * sizeof(float));
  cudaMemcpy(a_device, a.data(), m * k * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(b_device, b.data(), k * n * sizeof(float), cudaMemcpyHostToDevice);

  const dim3 block(TILE, TILE), grid((n + TILE - 1) / TILE, (m + TILE - 1) / TILE);
  multiply<<<grid, block>>>(a_device, b_device, c_device, m, n, k);
  cudaMemcpy(c.data(), c_device, m * n * sizeof(float), cudaMemcpyDeviceToHost);

  int wrong = 0;
  for (int row = 0; row < m; ++row) {
    for (int column = 0; column < n; ++column) {
      float sum = 0;
      for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + column];
      wrong += c[row * n + column] != sum;  // whole numbers: exact
    }
  }
  std::printf("matrix_multiply_tiled: %d wrong: %s\n", wrong, wrong == 0 ? "PASS" : "FAIL");
  cudaFree(a_device);
  cudaFree(b_device);
  cudaFree(c_device);
  return wrong == 0 ? 0 : 1;
}
