// SPDX-License-Identifier: Apache-2.0
// gemm / register tile, one-dimensional
//
// Idea     Joint register and local tiling: the group's tiles of A and B are in local memory, an
//          item's THREAD_ROWS rows of one column of C in registers.
// Changes  Against shared_tile: one load of B from local memory serves THREAD_ROWS multiply-adds.
//          (CUDA's ladder has two more rungs in between.)
// Cost     THREAD_ROWS + 1 local loads per THREAD_ROWS multiply-adds; items of a row of the tile
//          load the same elements of A.
// Limits   Local-memory bandwidth: reuse in one direction only. f32, any strides, no bias or
//          activation.
// Source   Kirk & Hwu, "Programming Massively Parallel Processors", joint register and shared-
//          memory tiling; the CUDA rung of this name.
//
// ROWS x COLUMNS is the group's tile of C, STEPS its depth along k; the host sets them from the
// device's limits.

#define ITEMS (ROWS / THREAD_ROWS * COLUMNS)

typedef struct {
  long batch, row, column;  // in elements
} Strides;

kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void gemm_register_tile_1d(global const float* a, ulong a_start, Strides a_strides,
                           global const float* b, ulong b_start, Strides b_strides,
                           global float* c, ulong c_start, Strides c_strides, long m, long n,
                           long k, float alpha, float beta) {
  local float a_tile[STEPS][ROWS + 1];  // transposed; the odd pitch spreads its stores over banks
  local float b_tile[STEPS][COLUMNS];
  const int item = get_local_id(0);
  const long first_column = (long)get_group_id(0) * COLUMNS;
  const long first_row = (long)get_group_id(1) * ROWS;
  const long batch = get_group_id(2);
  const int column = item % COLUMNS;
  const int row = item / COLUMNS * THREAD_ROWS;
  a += a_start + batch * a_strides.batch;
  b += b_start + batch * b_strides.batch;
  float sums[THREAD_ROWS];
  for (int i = 0; i < THREAD_ROWS; ++i) sums[i] = 0;
  for (long first = 0; first < k; first += STEPS) {
    for (int i = item; i < ROWS * STEPS; i += ITEMS) {
      const int step = i % STEPS;
      const int r = i / STEPS;
      const long a_row = first_row + r;
      const long a_column = first + step;
      a_tile[step][r] = a_row < m && a_column < k
                            ? a[a_row * a_strides.row + a_column * a_strides.column]
                            : 0.0f;
    }
    for (int i = item; i < STEPS * COLUMNS; i += ITEMS) {
      const int step = i / COLUMNS;
      const int j = i % COLUMNS;
      const long b_row = first + step;
      const long b_column = first_column + j;
      b_tile[step][j] = b_row < k && b_column < n
                            ? b[b_row * b_strides.row + b_column * b_strides.column]
                            : 0.0f;
    }
    barrier(CLK_LOCAL_MEM_FENCE);  // the tiles are complete
    for (int step = 0; step < STEPS; ++step) {
      const float b_value = b_tile[step][column];
      for (int i = 0; i < THREAD_ROWS; ++i) sums[i] += a_tile[step][row + i] * b_value;
    }
    barrier(CLK_LOCAL_MEM_FENCE);  // before the next tiles overwrite them
  }
  if (first_column + column >= n) return;
  c += c_start + batch * c_strides.batch + (first_column + column) * c_strides.column;
  for (int i = 0; i < THREAD_ROWS; ++i) {
    if (first_row + row + i >= m) return;
    global float* const to = c + (first_row + row + i) * c_strides.row;
    *to = beta == 0 ? alpha * sums[i] : alpha * sums[i] + beta * *to;
  }
}
