// SPDX-License-Identifier: Apache-2.0
// gemm / vectorized
//
// Idea     An item's 8 x 8 elements of C in registers, and every access four elements wide: vload4
//          from global memory, float4 from local memory. A's tile is transposed while it is stored,
//          so that an item's rows are adjacent in local memory, as its columns are.
// Changes  Against register_tile_1d: reuse in both directions, 4 local loads of 16 bytes for 64
//          multiply-adds, and a quarter of the global load instructions.
// Cost     The same bytes. vload4 needs only element alignment, so rows may start anywhere; CUDA's
//          float4 needs multiples of 16 bytes.
// Limits   Rows of A and B must be contiguous. f32, no bias or activation; groups of 256 items.
// Source   The OpenCL Specification 1.2, section 6.12.7 (vector data load and store functions); the
//          CUDA rung of this name.

#define TILE 128   // rows and columns of C per group
#define STEPS 8    // of k at a time
#define SIDE 16    // SIDE x SIDE items share the tile
#define APART 64   // from an item's first four rows or columns to its second four
#define PITCH (TILE + 4)

typedef struct {
  long batch, row, column;  // in elements
} Strides;

// Loads four elements of a row from `column` on; elements from `columns` on are zero.
float4 load_row(global const float* row, long column, long columns) {
  if (column + 4 <= columns) return vload4(0, row + column);
  float4 values = 0;
  if (column < columns) values.x = row[column];
  if (column + 1 < columns) values.y = row[column + 1];
  if (column + 2 < columns) values.z = row[column + 2];
  return values;
}

kernel __attribute__((reqd_work_group_size(SIDE * SIDE, 1, 1)))
void gemm_vectorized(global const float* a, ulong a_start, Strides a_strides,
                     global const float* b, ulong b_start, Strides b_strides, global float* c,
                     ulong c_start, Strides c_strides, long m, long n, long k, float alpha,
                     float beta) {
  local float a_tile[STEPS * PITCH];  // [step][row]
  local float b_tile[STEPS * PITCH];  // [step][column]
  const int item = get_local_id(0);
  const int item_row = item / SIDE * 4;
  const int item_column = item % SIDE * 4;
  const long first_column = (long)get_group_id(0) * TILE;
  const long first_row = (long)get_group_id(1) * TILE;
  const long batch = get_group_id(2);
  a += a_start + batch * a_strides.batch;
  b += b_start + batch * b_strides.batch;
  float4 sums[8][2];
  for (int i = 0; i < 8; ++i) sums[i][0] = sums[i][1] = 0;
  for (long first = 0; first < k; first += STEPS) {
    // Each item copies four elements of each tile: A's 128 rows of 8, B's 8 rows of 128.
    const int a_row = item / 2;
    const int a_step = item % 2 * 4;
    float4 values = 0;
    if (first_row + a_row < m) {
      values = load_row(a + (first_row + a_row) * a_strides.row, first + a_step, k);
    }
    a_tile[(a_step + 0) * PITCH + a_row] = values.x;
    a_tile[(a_step + 1) * PITCH + a_row] = values.y;
    a_tile[(a_step + 2) * PITCH + a_row] = values.z;
    a_tile[(a_step + 3) * PITCH + a_row] = values.w;
    const int b_step = item / 32;
    const int b_column = item % 32 * 4;
    values = 0;
    if (first + b_step < k) {
      values = load_row(b + (first + b_step) * b_strides.row, first_column + b_column, n);
    }
    vstore4(values, 0, b_tile + b_step * PITCH + b_column);
    barrier(CLK_LOCAL_MEM_FENCE);  // the tiles are complete
    for (int step = 0; step < STEPS; ++step) {
      local const float* const a_row_values = a_tile + step * PITCH + item_row;
      local const float* const b_column_values = b_tile + step * PITCH + item_column;
      const float4 b_low = vload4(0, b_column_values);
      const float4 b_high = vload4(0, b_column_values + APART);
      float a_values[8];
      vstore4(vload4(0, a_row_values), 0, a_values);
      vstore4(vload4(0, a_row_values + APART), 1, a_values);
      for (int i = 0; i < 8; ++i) {
        sums[i][0] += a_values[i] * b_low;
        sums[i][1] += a_values[i] * b_high;
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);  // before the next tiles overwrite them
  }
  c += c_start + batch * c_strides.batch;
  for (int i = 0; i < 8; ++i) {
    const long row = first_row + i / 4 * APART + item_row + i % 4;
    if (row >= m) continue;
    for (int part = 0; part < 2; ++part) {
      const long column = first_column + part * APART + item_column;
      float values[4];
      vstore4(alpha * sums[i][part], 0, values);
      for (int j = 0; j < 4 && column + j < n; ++j) {
        global float* const to = c + row * c_strides.row + (column + j) * c_strides.column;
        *to = beta == 0 ? values[j] : values[j] + beta * *to;  // without beta C may hold NaN
      }
    }
  }
}
