// SPDX-License-Identifier: Apache-2.0
// Generations in two buffers that take turns.
#include "check.cuh"

__global__ void life(const unsigned char* start, unsigned char* end, int steps) {
  __shared__ unsigned char world[2][16][16];
  int x = threadIdx.x, y = threadIdx.y;
  world[0][y][x] = start[y * 16 + x];
  for (int s = 0; s < steps; ++s) {
#ifndef BUG
    __syncthreads();
#endif
    int n = 0;
    for (int dy = -1; dy <= 1; ++dy)
      for (int dx = -1; dx <= 1; ++dx)
        if (dx || dy) n += world[s & 1][(y + dy) & 15][(x + dx) & 15];
    world[~s & 1][y][x] = n == 3 || (n == 2 && world[s & 1][y][x]);
  }
  end[y * 16 + x] = world[steps & 1][y][x];
}
int main() {
  Array<unsigned char> a(256), b(256);
  unsigned char w[256], v[256];
  for (int i = 0; i < 256; ++i) a[i] = w[i] = i * 7 % 3 == 0;
  a.up();
  life<<<1, dim3(16, 16)>>>(a.device, b.device, 4);
  b.down();
  for (int s = 0; s < 4; ++s) {
    for (int i = 0; i < 256; ++i) {
      int n = 0;
      for (int d = 0; d < 9; ++d)
        if (d != 4) n += w[((i / 16 + d / 3 - 1) & 15) * 16 + ((i % 16 + d % 3 - 1) & 15)];
      v[i] = n == 3 || (n == 2 && w[i]);
    }
    for (int i = 0; i < 256; ++i) w[i] = v[i];
  }
  for (int i = 0; i < 256; ++i) CHECK(b[i] == w[i]);
  return ok();
}
