// SPDX-License-Identifier: Apache-2.0
// A tiled matrix product that overwrites tiles which others still read.
#include "check.cuh"

#define TILE 8

__global__ void product(const double* a, const double* b, double* c, int n) {
  __shared__ double as[TILE][TILE];
  __shared__ double bs[TILE][TILE];
  int tx = threadIdx.x, ty = threadIdx.y;
  int col = blockIdx.x * TILE + tx;
  int row = blockIdx.y * TILE + ty;
  double sum = 0;
  for (int t = 0; t < n / TILE; t++)
  {
    as[ty][tx] = a[row * n + t * TILE + tx];
    bs[ty][tx] = b[(t * TILE + ty) * n + col];
    __syncthreads();
    for (int k = 0; k < TILE; k++) {
      sum += as[ty][k] * bs[k][tx];
    }
#ifndef BUG
    __syncthreads();
#endif
  }
  c[row * n + col] = sum;
}

int main() {
  const int n = 24;
  Array<double> a(n * n), b(n * n), c(n * n);
  for (int i = 0; i < n * n; ++i) a[i] = i % 11, b[i] = i % 3;
  a.up(), b.up();
  product<<<dim3(3, 3), dim3(TILE, TILE)>>>(a.device, b.device, c.device, n);
  c.down();
  for (int i = 0; i < n * n; ++i) {
    double sum = 0;
    for (int k = 0; k < n; ++k) sum += a[i / n * n + k] * b[k * n + i % n];
    CHECK(c[i] == sum);
  }
  return ok();
}
