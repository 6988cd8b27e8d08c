// SPDX-License-Identifier: Apache-2.0
// A tiled matrix product whose tiles are used before they are there.
#include "check.cuh"

constexpr int tile = 16;

__global__ void multiply(const float* a, const float* b, float* c, int n) {
  __shared__ float left[tile][tile], right[tile][tile];
  const int x = threadIdx.x, y = threadIdx.y;
  const int row = blockIdx.y * tile + y, column = blockIdx.x * tile + x;
  float sum = 0;
  for (int k = 0; k < n; k += tile) {
    left[y][x] = a[row * n + k + x];
    right[y][x] = b[(k + y) * n + column];
#ifndef BUG
    __syncthreads();
#endif
    for (int i = 0; i < tile; ++i) sum += left[y][i] * right[i][x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

int main() {
  const int n = 32;
  Array<float> a(n * n), b(n * n), c(n * n);
  for (int i = 0; i < n * n; ++i) a[i] = i % 7, b[i] = i % 5;
  a.up(), b.up();
  multiply<<<dim3(2, 2), dim3(tile, tile)>>>(a.device, b.device, c.device, n);
  c.down();
  for (int i = 0; i < n * n; ++i) {
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += a[i / n * n + k] * b[k * n + i % n];
    CHECK(c[i] == sum);
  }
  return ok();
}
