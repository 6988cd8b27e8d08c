// SPDX-License-Identifier: Apache-2.0
// gemm / shared tile
//
// Idea     A work-group copies a TILE x TILE tile of A and of B into local memory (CUDA's shared
//          memory), from which each item reads its row and column.
// Changes  Against naive_coalesced: an element of A or B is loaded from global memory once per
//          group instead of once per item, TILE times less often. Copies are zero-padded at edges.
// Cost     2 k / TILE global loads per element of C, 2 k local loads, two barriers every TILE steps
//          of k.
// Limits   Local memory: each multiply-add waits for two loads. On a CPU local memory is ordinary
//          memory and the copy gains little. f32, any strides, no bias or activation.
// Source   Kirk & Hwu, chapter on tiling; the CUDA rung of this name.
//
// TILE is set by the host: 32, or the largest that the device's work-groups and local memory allow.

typedef struct {
  long batch, row, column;  // in elements
} Strides;

kernel __attribute__((reqd_work_group_size(TILE, TILE, 1)))
void gemm_shared_tile(global const float* a, ulong a_start, Strides a_strides,
                      global const float* b, ulong b_start, Strides b_strides, global float* c,
                      ulong c_start, Strides c_strides, long m, long n, long k, float alpha,
                      float beta) {
  local float a_tile[TILE][TILE];
  local float b_tile[TILE][TILE];
  const int x = get_local_id(0);
  const int y = get_local_id(1);
  const long column = get_global_id(0);
  const long row = get_global_id(1);
  const long batch = get_global_id(2);
  a += a_start + batch * a_strides.batch;
  b += b_start + batch * b_strides.batch;
  float sum = 0;
  for (long first = 0; first < k; first += TILE) {
    a_tile[y][x] = row < m && first + x < k
                       ? a[row * a_strides.row + (first + x) * a_strides.column]
                       : 0.0f;
    b_tile[y][x] = first + y < k && column < n
                       ? b[(first + y) * b_strides.row + column * b_strides.column]
                       : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);  // the tiles are complete
    for (int step = 0; step < TILE; ++step) sum += a_tile[y][step] * b_tile[step][x];
    barrier(CLK_LOCAL_MEM_FENCE);  // before the next tile overwrites them
  }
  if (row >= m || column >= n) return;
  c += c_start + batch * c_strides.batch + row * c_strides.row + column * c_strides.column;
  *c = beta == 0 ? alpha * sum : alpha * sum + beta * *c;  // without beta C may hold NaN
}
