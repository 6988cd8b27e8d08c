// SPDX-License-Identifier: Apache-2.0
// Column sums of a matrix, each thread per row's element.
#include "check.cuh"

__global__ void columns(const double* matrix, double* sums, int rows, int width) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < rows)
#ifdef BUG
    sums[x] += matrix[y * width + x];
#else
    atomicAdd(&sums[x], matrix[y * width + x]);
#endif
}

int main() {
  const int rows = 20, width = 24;
  Array<double> matrix(rows * width), sums(width);
  for (int i = 0; i < matrix.size; ++i) matrix[i] = i % 7;
  matrix.up();
  columns<<<dim3(3, 3), dim3(8, 8)>>>(matrix.device, sums.device, rows, width);
  sums.down();
  for (int x = 0; x < width; ++x) {
    double sum = 0;
    for (int y = 0; y < rows; ++y) sum += matrix[y * width + x];
    CHECK(sums[x] == sum);
  }
  return ok();
}
