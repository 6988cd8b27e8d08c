// SPDX-License-Identifier: Apache-2.0
// Bug: threads skip by their own column, pass no barrier, and overwrite A's tile before it is read.
// rung emulate: barrier in line 21
#include <cstdio>
#include <vector>

constexpr int TILE = 16, COARSE = 4;

__global__ void multiply(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float a_tile[TILE][TILE], b_tile[TILE][TILE];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int row = blockIdx.y * TILE + ty;
  float sums[COARSE] = {};
  for (int first = 0; first < k; first += TILE) {
    a_tile[ty][tx] = row < m && first + tx < k ? a[row * k + first + tx] : 0;
    for (int part = 0; part < COARSE; ++part) {
      const int first_column = (blockIdx.x * COARSE + part) * TILE;
      const int column = first_column + tx;
      if (column >= n) break;
      b_tile[ty][tx] = first + ty < k ? b[(first + ty) * n + column] : 0;
      __syncthreads();
      for (int i = 0; i < TILE; ++i) sums[part] += a_tile[ty][i] * b_tile[i][tx];
      __syncthreads();
    }
  }
  for (int part = 0; part < COARSE; ++part) {
    const int column = (blockIdx.x * COARSE + part) * TILE + tx;
    if (row < m && column < n) c[row * n + column] = sums[part];
  }
}

int main() {
  const int m = 64, n = 70, k = 64;
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
  std::printf("skipped_tiles_bug: %d wrong: %s\n", wrong, wrong == 0 ? "PASS" : "FAIL");
  cudaFree(a_device);
  cudaFree(b_device);
  cudaFree(c_device);
  return wrong == 0 ? 0 : 1;
}
