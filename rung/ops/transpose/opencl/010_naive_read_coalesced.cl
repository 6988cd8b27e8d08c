// SPDX-License-Identifier: Apache-2.0
// transpose / naive, coalesced reads
//
// Idea     One work-item per element; neighboring items read neighboring elements of x.
// Changes  Baseline.
// Cost     One load and one store per element. On a GPU each of the items that execute together
//          stores 4 bytes to a cache sector of its own.
// Limits   4-byte elements, one matrix or a batch along one axis.
// Source   G. Ruetsch and P. Micikevicius, "Optimizing Matrix Transpose in CUDA", NVIDIA, 2009.

typedef struct {
  long batch, row, column;  // strides in elements: between matrices, rows and columns of x
} Strides;

kernel void transpose_naive_read_coalesced(global const uint* x, ulong x_start, Strides x_strides,
                                           global uint* y, ulong y_start, Strides y_strides,
                                           long rows, long columns) {
  const long column = get_global_id(0);
  const long row = get_global_id(1);
  const long batch = get_global_id(2);
  if (row >= rows || column >= columns) return;
  x += x_start + batch * x_strides.batch;
  y += y_start + batch * y_strides.batch;
  y[column * y_strides.row + row * y_strides.column] =
      x[row * x_strides.row + column * x_strides.column];
}
