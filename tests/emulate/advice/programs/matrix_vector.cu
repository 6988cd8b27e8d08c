// SPDX-License-Identifier: Apache-2.0
// A matrix-vector product whose inner loop reads one column too many.
#include "check.cuh"

__global__ void multiply(const float* m, const float* x, float* y, int rows, int columns) {
  const int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float sum = 0;
#ifdef BUG
  for (int c = 0; c <= columns; ++c) sum += m[r * columns + c] * x[c];
#else
  for (int c = 0; c < columns; ++c) sum += m[r * columns + c] * x[c];
#endif
  y[r] = sum;
}

int main() {
  const int rows = 70, columns = 40;
  Array<float> m(rows * columns), x(columns), y(rows);
  for (int i = 0; i < m.size; ++i) m[i] = i % 5;
  for (int i = 0; i < columns; ++i) x[i] = i % 3;
  m.up(), x.up();
  multiply<<<3, 32>>>(m.device, x.device, y.device, rows, columns);
  y.down();
  for (int r = 0; r < rows; ++r) {
    float sum = 0;
    for (int c = 0; c < columns; ++c) sum += m[r * columns + c] * x[c];
    CHECK(y[r] == sum);
  }
  return ok();
}
