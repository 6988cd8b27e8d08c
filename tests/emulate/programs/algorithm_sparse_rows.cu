// SPDX-License-Identifier: Apache-2.0
// Sparse matrix times vector, a warp per row.
#include "check.cuh"

__global__ void multiply(const int* begin, const int* column, const float* value, const float* x,
                         float* y, int rows) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float sum = 0;
  for (int i = begin[row] + lane; i < begin[row + 1]; i += 32) sum += value[i] * x[column[i]];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
  if (lane == 0) y[row] = sum;
}

int main() {
  constexpr int rows = 20;
  Array<int> begin(rows + 1), column(rows * rows);
  Array<float> value(rows * rows), x(rows), y(rows);
  int count = 0;
  for (int r = 0; r < rows; ++r) {
    x[r] = static_cast<float>(r + 1);
    begin[r] = count;
    for (int c = r % 3; c < rows; c += 1 + r % 4) {
      column[count] = c;
      value[count++] = static_cast<float>(r - c);
    }
  }
  begin[rows] = count;
  begin.up();
  column.up();
  value.up();
  x.up();
  multiply<<<5, 128>>>(begin.device, column.device, value.device, x.device, y.device, rows);
  y.down();
  for (int r = 0; r < rows; ++r) {
    float sum = 0;
    for (int i = begin[r]; i < begin[r + 1]; ++i) sum += value[i] * x[column[i]];
    CHECK(y[r] == sum);
  }
  return ok();
}
