// SPDX-License-Identifier: Apache-2.0
// wmma: tf32, bfloat16 and bytes.
#include <mma.h>

#include "check.cuh"

using namespace nvcuda::wmma;

__global__ void tf32(const float* a, const float* b, float* c) {
  fragment<matrix_a, 16, 16, 8, precision::tf32, row_major> fa;
  fragment<matrix_b, 16, 16, 8, precision::tf32, row_major> fb;
  fragment<accumulator, 16, 16, 8, float> fc;
  load_matrix_sync(fa, a, 8);
  load_matrix_sync(fb, b, 16);
  for (int i = 0; i < fa.num_elements; ++i) fa.x[i] = __float_to_tf32(fa.x[i]);
  for (int i = 0; i < fb.num_elements; ++i) fb.x[i] = __float_to_tf32(fb.x[i]);
  fill_fragment(fc, 0.0f);
  mma_sync(fc, fa, fb, fc);
  store_matrix_sync(c, fc, 16, mem_row_major);
}
__global__ void bf16(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c) {
  fragment<matrix_a, 16, 16, 16, __nv_bfloat16, row_major> fa;
  fragment<matrix_b, 16, 16, 16, __nv_bfloat16, row_major> fb;
  fragment<accumulator, 16, 16, 16, float> fc;
  load_matrix_sync(fa, a, 16);
  load_matrix_sync(fb, b, 16);
  fill_fragment(fc, 0.0f);
  mma_sync(fc, fa, fb, fc);
  store_matrix_sync(c, fc, 16, mem_row_major);
}
__global__ void bytes(const signed char* a, const signed char* b, int* c) {
  fragment<matrix_a, 16, 16, 16, signed char, row_major> fa;
  fragment<matrix_b, 16, 16, 16, signed char, col_major> fb;
  fragment<accumulator, 16, 16, 16, int> fc;
  load_matrix_sync(fa, a, 16);
  load_matrix_sync(fb, b, 16);
  fill_fragment(fc, 5);
  mma_sync(fc, fa, fb, fc);
  store_matrix_sync(c, fc, 16, mem_row_major);
}

int main() {
  Array<float> a(256), b(256), c(256);
  Array<__nv_bfloat16> x(256), y(256);
  Array<signed char> p(256), q(256);
  Array<int> r(256);
  const auto at = [](int i) { return i % 9 - 4; };
  const auto bt = [](int i) { return i % 6 - 2; };
  for (int i = 0; i < 256; ++i) {
    a[i] = static_cast<float>(at(i)), b[i] = static_cast<float>(bt(i));
    x[i] = __float2bfloat16(a[i]), y[i] = __float2bfloat16(b[i]);
    p[i] = static_cast<signed char>(at(i)), q[i] = static_cast<signed char>(bt(i));
  }
  a.up(), b.up(), x.up(), y.up(), p.up(), q.up();
  const auto sum = [&](int i, int j, int depth, bool columns) {
    int total = 0;
    for (int k = 0; k < depth; ++k)
      total += at(i * depth + k) * bt(columns ? j * depth + k : k * 16 + j);
    return total;
  };
  tf32<<<1, 32>>>(a.device, b.device, c.device);
  c.down();
  for (int i = 0; i < 256; ++i) CHECK(c[i] == sum(i / 16, i % 16, 8, false));
  bf16<<<1, 32>>>(x.device, y.device, c.device);
  c.down();
  for (int i = 0; i < 256; ++i) CHECK(c[i] == sum(i / 16, i % 16, 16, false));
  bytes<<<1, 32>>>(p.device, q.device, r.device);
  r.down();
  for (int i = 0; i < 256; ++i) CHECK(r[i] == 5 + sum(i / 16, i % 16, 16, true));
  return ok();
}
