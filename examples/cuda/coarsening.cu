// SPDX-License-Identifier: Apache-2.0
// C = A B through tiles in shared memory; each thread makes COARSE elements of a row of C, TILE
// columns apart, so that a tile of A is loaded once for COARSE tiles of C.
#include <cstdio>
#include <vector>

// `rung emulate --sweep TILE_WIDTH=8,16 --sweep COARSENING=1,2,4 coarsening.cu` compares.
#ifndef TILE_WIDTH
#define TILE_WIDTH 16
#endif
#ifndef COARSENING
#define COARSENING 4
#endif
constexpr int TILE = TILE_WIDTH, COARSE = COARSENING;

__global__ void multiply(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float a_tile[TILE][TILE], b_tile[TILE][TILE];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int column = blockIdx.x * TILE * COARSE + tx, row = blockIdx.y * TILE + ty;
  float sums[COARSE] = {};
  for (int first = 0; first < k; first += TILE) {
    a_tile[ty][tx] = row < m && first + tx < k ? a[row * k + first + tx] : 0;
    for (int part = 0; part < COARSE; ++part) {
      const int here = column + part * TILE;
      b_tile[ty][tx] = first + ty < k && here < n ? b[(first + ty) * n + here] : 0;
      __syncthreads();  // both tiles are complete
      for (int i = 0; i < TILE; ++i) sums[part] += a_tile[ty][i] * b_tile[i][tx];
      __syncthreads();  // no thread reads them any more
    }
  }
  for (int part = 0; part < COARSE; ++part) {
    const int here = column + part * TILE;
    if (row < m && here < n) c[row * n + here] = sums[part];
  }
}

int main() {
  const int m = 64, n = 128, k = 64;
  std::vector<float> a(m * k), b(k * n), c(m * n);
  for (int i = 0; i < m * k; ++i) a[i] = i % 7 - 3;
  for (int i = 0; i < k * n; ++i) b[i] = i % 5 - 2;
  float *a_device, *b_device, *c_device;
  cudaMalloc(&a_device, m * k * sizeof(float));
  cudaMalloc(&b_device, k * n * sizeof(float));
  cudaMalloc(&c_device, m * n * sizeof(float));
  cudaMemcpy(a_device, a.data(), m * k * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(b_device, b.data(), k * n * sizeof(float), cudaMemcpyHostToDevice);

  const dim3 block(TILE, TILE);
  const dim3 grid((n + TILE * COARSE - 1) / (TILE * COARSE), (m + TILE - 1) / TILE);
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
  std::printf("coarsening: %d wrong: %s\n", wrong, wrong == 0 ? "PASS" : "FAIL");
  cudaFree(a_device);
  cudaFree(b_device);
  cudaFree(c_device);
  return wrong == 0 ? 0 : 1;
}
