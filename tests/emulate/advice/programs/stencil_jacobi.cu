// SPDX-License-Identifier: Apache-2.0
// Jacobi steps in one tile: some threads write what their neighbors still read.
#include "check.cuh"

#define N 32
__global__ void jacobi(const float* in, float* out, int steps) {
  __shared__ float grid[N + 2][N + 2];
  int x = threadIdx.x + 1, y = threadIdx.y + 1;
  grid[y][x] = in[(y - 1) * N + x - 1];
  if (x == 1) {
    grid[y][0] = 0;
    grid[y][N + 1] = 0;
  }
  if (y == 1) {
    grid[0][x] = 0;
    grid[N + 1][x] = 0;
  }
  __syncthreads();
  for (int s = 0; s < steps; ++s) {
    float next = 0.25f * (grid[y][x - 1] + grid[y][x + 1] + grid[y - 1][x] + grid[y + 1][x]);
#ifndef BUG
    __syncthreads();
#endif
    grid[y][x] = next;
    __syncthreads();
  }
  out[(y - 1) * N + x - 1] = grid[y][x];
}
int main() {
  Array<float> in(N * N), out(N * N);
  float g[N + 2][N + 2] = {}, h[N + 2][N + 2] = {};
  for (int i = 0; i < N * N; ++i) in[i] = g[i / N + 1][i % N + 1] = i % 16;
  in.up();
  jacobi<<<1, dim3(N, N)>>>(in.device, out.device, 3);
  out.down();
  for (int s = 0; s < 3; ++s) {
    for (int y = 1; y <= N; ++y)
      for (int x = 1; x <= N; ++x)
        h[y][x] = 0.25f * (g[y][x - 1] + g[y][x + 1] + g[y - 1][x] + g[y + 1][x]);
    for (int y = 1; y <= N; ++y)
      for (int x = 1; x <= N; ++x) g[y][x] = h[y][x];
  }
  for (int i = 0; i < N * N; ++i) CHECK(out[i] == g[i / N + 1][i % N + 1]);
  return ok();
}
