// SPDX-License-Identifier: Apache-2.0
// A tiled product of ragged matrices against the plain one.
#include "check.cuh"

#define TILE 16
__global__ void multiply(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float as[TILE][TILE], bs[TILE][TILE];
  const int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
  float sum = 0;
  for (int tile = 0; tile < (k + TILE - 1) / TILE; ++tile) {
    const int x = tile * TILE + threadIdx.x, y = tile * TILE + threadIdx.y;
    as[threadIdx.y][threadIdx.x] = row < m && x < k ? a[row * k + x] : 0;
    bs[threadIdx.y][threadIdx.x] = y < k && column < n ? b[y * n + column] : 0;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < TILE; ++i) sum += as[threadIdx.y][i] * bs[i][threadIdx.x];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}

int main() {
  const int m = 37, n = 29, k = 41;
  Array<float> a(m * k), b(k * n), c(m * n);
  for (int i = 0; i < m * k; ++i) a[i] = static_cast<float>(i % 9 - 4);
  for (int i = 0; i < k * n; ++i) b[i] = static_cast<float>(i % 7 - 3);
  a.up();
  b.up();
  multiply<<<dim3((n + TILE - 1) / TILE, (m + TILE - 1) / TILE), dim3(TILE, TILE)>>>(
      a.device, b.device, c.device, m, n, k);
  c.down();
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int p = 0; p < k; ++p) sum += a[i * k + p] * b[p * n + j];
      CHECK(c[i * n + j] == sum);
    }
  }
  return ok();
}
