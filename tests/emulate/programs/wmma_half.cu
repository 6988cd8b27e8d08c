// SPDX-License-Identifier: Apache-2.0
// wmma: products of half with float and half sums, in both layouts.
#include <mma.h>

#include "check.cuh"

using namespace nvcuda;

__global__ void product(const half* a, const half* b, float* c) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::fill_fragment(fc, 0.0f);
  for (int k = 0; k < 32; k += 16) {
    wmma::load_matrix_sync(fa, a + k, 32);
    wmma::load_matrix_sync(fb, b + k, 32);
    wmma::mma_sync(fc, fa, fb, fc);
  }
  for (int i = 0; i < fc.num_elements; ++i) fc.x[i] *= 2;
  wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}
__global__ void product_half(const half* a, const half* b, half* c) {
  wmma::fragment<wmma::matrix_a, 32, 8, 16, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 32, 8, 16, half, wmma::row_major> fb;
  wmma::fragment<wmma::accumulator, 32, 8, 16, half> fc;
  wmma::fill_fragment(fc, __float2half(1.0f));
  wmma::load_matrix_sync(fa, a, 16);
  wmma::load_matrix_sync(fb, b, 8);
  wmma::mma_sync(fc, fa, fb, fc);
  wmma::store_matrix_sync(c, fc, 32, wmma::mem_col_major);
}

int main() {
  Array<half> a(512), b(512), h(256);
  Array<float> c(256);
  const auto at = [](int i) { return static_cast<float>(i % 7 - 3); };
  const auto bt = [](int i) { return static_cast<float>(i % 5 - 2); };
  for (int i = 0; i < 512; ++i) a[i] = __float2half(at(i)), b[i] = __float2half(bt(i));
  a.up();
  b.up();
  product<<<1, 32>>>(a.device, b.device, c.device);
  c.down();
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 16; ++j) {
      float sum = 0;
      for (int k = 0; k < 32; ++k) sum += at(i * 32 + k) * bt(j * 32 + k);
      CHECK(c[i * 16 + j] == 2 * sum);
    }
  }
  product_half<<<1, 32>>>(a.device, b.device, h.device);
  h.down();
  for (int i = 0; i < 32; ++i) {
    for (int j = 0; j < 8; ++j) {
      float sum = 1;
      for (int k = 0; k < 16; ++k) sum += at(i * 16 + k) * bt(k * 8 + j);
      CHECK(__half2float(h[j * 32 + i]) == sum);
    }
  }
  return ok();
}
