// SPDX-License-Identifier: Apache-2.0
// C = A B through tiles in shared memory.
#include <cstdio>
#include <cstdlib>
#include <vector>

#ifndef SIZE
#define SIZE 1024
#endif
constexpr int tile = 16;

__global__ void multiply(const float* a, const float* b, float* c, int n) {
  __shared__ float tile_a[tile][tile], tile_b[tile][tile];
  const int x = threadIdx.x, y = threadIdx.y;
  const int column = blockIdx.x * tile + x;
  const int row = blockIdx.y * tile + y;
  float sum = 0;
  for (int t = 0; t < (n + tile - 1) / tile; ++t) {
    const int ka = t * tile + x, kb = t * tile + y;
    tile_a[y][x] = row < n && ka < n ? a[row * n + ka] : 0.0f;
    tile_b[y][x] = kb < n && column < n ? b[kb * n + column] : 0.0f;
    __syncthreads();
    for (int k = 0; k < tile; ++k) sum += tile_a[y][k] * tile_b[k][x];
    __syncthreads();
  }
  if (row < n && column < n) c[row * n + column] = sum;
}

int main() {
  const int n = SIZE;
  std::vector<float> a(n * n), b(n * n), c(n * n);
  for (int i = 0; i < n * n; ++i) {
    a[i] = static_cast<float>(i % 7 - 3);
    b[i] = static_cast<float>(i % 5 - 2);
  }
  const size_t bytes = a.size() * sizeof(float);
  float *da, *db, *dc;
  cudaMalloc(&da, bytes);
  cudaMalloc(&db, bytes);
  cudaMalloc(&dc, bytes);
  cudaMemcpy(da, a.data(), bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(db, b.data(), bytes, cudaMemcpyHostToDevice);
  const dim3 block(tile, tile);
  const dim3 grid((n + tile - 1) / tile, (n + tile - 1) / tile);
  multiply<<<grid, block>>>(da, db, dc, n);
  cudaMemcpy(c.data(), dc, bytes, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 1000; ++i) {
    const int row = i * 7919 % n, column = i * 104729 % n;
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
    if (c[row * n + column] != sum) return std::printf("wrong at %d %d\n", row, column), 1;
  }
  cudaFree(da);
  cudaFree(db);
  cudaFree(dc);
  return 0;
}
