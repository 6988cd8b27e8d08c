// SPDX-License-Identifier: Apache-2.0
// A tile in two extents that has no room for the halo.
#include "check.cuh"

constexpr int INPUT = 16, OUTPUT = 14;

__global__ void cross(const int* x, int* y, int width) {
#ifdef BUG
  __shared__ int tile[OUTPUT][OUTPUT];
#else
  __shared__ int tile[INPUT][INPUT];
#endif
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int column = blockIdx.x * OUTPUT + tx, row = blockIdx.y * OUTPUT + ty;
  tile[ty][tx] = x[row * width + column];
  __syncthreads();
  if (tx > 0 && tx < INPUT - 1 && ty > 0 && ty < INPUT - 1) {
    y[row * width + column] =
        tile[ty - 1][tx] + tile[ty + 1][tx] + tile[ty][tx - 1] + tile[ty][tx + 1];
  }
}

int main() {
  const int width = 2 * OUTPUT + 2;
  Array<int> x(width * width), y(width * width);
  for (int i = 0; i < width * width; ++i) x[i] = i * i % 101;
  x.up();
  cross<<<dim3(2, 2), dim3(INPUT, INPUT)>>>(x.device, y.device, width);
  y.down();
  for (int row = 1; row < width - 1; ++row) {
    for (int i = row * width + 1; i < row * width + width - 1; ++i) {
      CHECK(y[i] == x[i - width] + x[i + width] + x[i - 1] + x[i + 1]);
    }
  }
  return ok();
}
