// SPDX-License-Identifier: Apache-2.0
// gemm / naive uncoalesced
//
// Idea     One work-item computes one element of C by the textbook loop. Axis 0 of the index space
//          is the row, as if C were column-major.
// Changes  Baseline.
// Cost     2 k loads per element of C. On a GPU, items that execute together are in different rows:
//          each of their loads of A and stores of C touches a cache sector of its own.
// Limits   Memory transactions. f32, any strides, no bias or activation.
// Source   The OpenCL Specification 1.2, section 3.2; the CUDA rung of this name.

typedef struct {
  long batch, row, column;  // in elements
} Strides;

kernel void gemm_naive_uncoalesced(global const float* a, ulong a_start, Strides a_strides,
                                   global const float* b, ulong b_start, Strides b_strides,
                                   global float* c, ulong c_start, Strides c_strides, long m,
                                   long n, long k, float alpha, float beta) {
  const long row = get_global_id(0);
  const long column = get_global_id(1);
  const long batch = get_global_id(2);
  if (row >= m || column >= n) return;
  a += a_start + batch * a_strides.batch + row * a_strides.row;
  b += b_start + batch * b_strides.batch + column * b_strides.column;
  c += c_start + batch * c_strides.batch + row * c_strides.row + column * c_strides.column;
  float sum = 0;
  for (long step = 0; step < k; ++step) {
    sum += a[step * a_strides.column] * b[step * b_strides.row];
  }
  *c = beta == 0 ? alpha * sum : alpha * sum + beta * *c;  // without beta C may hold NaN
}
