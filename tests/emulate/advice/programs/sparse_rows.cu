// SPDX-License-Identifier: Apache-2.0
// A sparse matrix-vector product whose last block has too many rows.
#include "check.cuh"

__global__ void spmv(const int* row, const int* col, const float* val, const float* x, float* y,
                     int rows) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef BUG
  for (int k = row[r]; k < row[r + 1]; ++k) y[r] += val[k] * x[col[k]];
#else
  if (r < rows)
    for (int k = row[r]; k < row[r + 1]; ++k) y[r] += val[k] * x[col[k]];
#endif
}
int main() {
  const int rows = 40;
  Array<int> row(rows + 1), col(80);
  Array<float> val(80), x(rows), y(rows);
  for (int i = 0; i <= rows; ++i) row[i] = 2 * i;
  for (int i = 0; i < 80; ++i) col[i] = i % rows, val[i] = i;
  for (int i = 0; i < rows; ++i) x[i] = 1;
  row.up(), col.up(), val.up(), x.up();
  spmv<<<2, 32>>>(row.device, col.device, val.device, x.device, y.device, rows);
  y.down();
  for (int i = 0; i < rows; ++i) CHECK(y[i] == 4 * i + 1);
  return ok();
}
