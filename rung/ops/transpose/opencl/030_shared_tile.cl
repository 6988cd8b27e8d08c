// SPDX-License-Identifier: Apache-2.0
// transpose / shared tile
//
// Idea     A work-group copies a tile of TILE x TILE into local memory row by row, and stores it to
//          y column by column: global loads and stores coalesce.
// Changes  Against naive_read_coalesced: items that execute together store neighbors in y.
// Cost     One load and one store per element, through local memory. On a GPU with 32 banks a
//          column of the tile is in a single bank: bank conflicts, left in on purpose.
// Limits   4-byte elements, one matrix or a batch along one axis.
// Source   G. Ruetsch and P. Micikevicius, "Optimizing Matrix Transpose in CUDA", NVIDIA, 2009.
//
// The host defines TILE: 32, or the largest that the device's work-groups and local memory allow.

typedef struct {
  long batch, row, column;  // strides in elements: between matrices, rows and columns of x
} Strides;

kernel __attribute__((reqd_work_group_size(TILE, TILE, 1)))
void transpose_shared_tile(global const uint* x, ulong x_start, Strides x_strides,
                           global uint* y, ulong y_start, Strides y_strides, long rows,
                           long columns) {
  local uint tile[TILE][TILE];
  const int lane = get_local_id(0);
  const int line = get_local_id(1);
  const long first_column = (long)get_group_id(0) * TILE;
  const long first_row = (long)get_group_id(1) * TILE;
  const long batch = get_group_id(2);
  x += x_start + batch * x_strides.batch;
  y += y_start + batch * y_strides.batch;
  if (first_row + line < rows && first_column + lane < columns) {
    tile[line][lane] =
        x[(first_row + line) * x_strides.row + (first_column + lane) * x_strides.column];
  }
  barrier(CLK_LOCAL_MEM_FENCE);  // the tile is complete
  // Neighboring items read a column of the tile, which is a row of y.
  if (first_row + lane < rows && first_column + line < columns) {
    y[(first_column + line) * y_strides.row + (first_row + lane) * y_strides.column] =
        tile[lane][line];
  }
}
