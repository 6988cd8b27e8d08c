// SPDX-License-Identifier: Apache-2.0
// The second barrier of a tiled matrix product.
#include "../programs/check.cuh"

#define TILE 8

__global__ void multiply(const float* a, const float* b, float* c, int n) {
  __shared__ float left[TILE][TILE], right[TILE][TILE];
  const int x = threadIdx.x, y = threadIdx.y;
  const int row = TILE * blockIdx.y + y, column = TILE * blockIdx.x + x;
  float sum = 0;
  for (int k = 0; k < n; k += TILE) {
    left[y][x] = a[row * n + k + x];  // expect: race
    right[y][x] = x + y + k;
    __syncthreads();
    for (int i = 0; i < TILE; ++i) sum += left[y][i] * b[(k + i) * n + column];  // expect: race
#ifndef BUG
    __syncthreads();
#endif
  }
  c[row * n + column] = sum + right[y][x];
}

int main() {
  Array<float> a(256), b(256), c(256);
  for (int i = 0; i < 256; ++i) {
    a[i] = static_cast<float>(i % 7);
    b[i] = static_cast<float>(i % 5);
  }
  a.up();
  b.up();
  multiply<<<dim3(2, 2), dim3(TILE, TILE)>>>(a.device, b.device, c.device, 16);
  return ok();
}
