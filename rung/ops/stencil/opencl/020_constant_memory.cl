// SPDX-License-Identifier: Apache-2.0
// stencil / constant memory
//
// Idea     The mask is small and read-only, and all work-items read the same weight at the same
//          time: the access pattern of the constant address space. A GPU broadcasts a weight to all
//          work-items in one transaction.
// Changes  Against a mask in global memory (CUDA's first rung): half as many loads. CUDA's constant
//          array is one per process; here the mask is a kernel argument, so that launches do not
//          share it.
// Cost     One load of x per multiply-add.
// Limits   f32; one or two axes, a contiguous mask, zero edges, contiguous rows.
// Source   D. Kirk, W. Hwu and I. El Hajj, Programming Massively Parallel Processors, section 7.3.

typedef struct {
  long rows, columns, x_row, y_row;  // x_row, y_row: row strides in elements
  long mask_rows, mask_columns, origin_row, origin_column;
} Image;

kernel void stencil_constant_memory(global const float* x, ulong x_start, constant float* mask,
                                    global float* y, ulong y_start, Image p, float scale) {
  const long column = get_global_id(0);
  const long row = get_global_id(1);
  if (row >= p.rows || column >= p.columns) return;
  x += x_start;
  y += y_start;
  float sum = 0;
  for (long i = 0; i < p.mask_rows; ++i) {
    for (long j = 0; j < p.mask_columns; ++j) {
      const long from_row = row + i - p.origin_row;
      const long from_column = column + j - p.origin_column;
      if (from_row < 0 || from_row >= p.rows) continue;
      if (from_column < 0 || from_column >= p.columns) continue;
      sum += mask[i * p.mask_columns + j] * x[from_row * p.x_row + from_column];
    }
  }
  y[row * p.y_row + column] = scale * sum;
}
