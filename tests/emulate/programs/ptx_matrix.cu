// SPDX-License-Identifier: Apache-2.0
// Inline PTX: cp.async, ldmatrix and mma.sync on one 16 x 8 x 16 product.
#include <cuda_fp16.h>

#include "check.cuh"

__global__ void product(const half* a, const half* b, float* d) {
  __shared__ __align__(16) half left[16 * 16];
  __shared__ __align__(16) half right[16 * 8];
  const int t = threadIdx.x;
  unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(left + 8 * t));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(to), "l"(a + 8 * t));
  if (t < 16) {
    to = static_cast<unsigned>(__cvta_generic_to_shared(right + 8 * t));
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;\n" ::"r"(to), "l"(b + 8 * t), "n"(16));
  }
  asm volatile("cp.async.commit_group;\n" ::);
  asm volatile("cp.async.wait_group %0;\n" ::"n"(0));
  __syncthreads();
  unsigned x[4], y[2];
  const unsigned row =
      static_cast<unsigned>(__cvta_generic_to_shared(left + (t % 16) * 16 + (t / 16) * 8));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
               : "r"(row));
  const unsigned column = static_cast<unsigned>(__cvta_generic_to_shared(right + (t % 16) * 8));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];\n"
               : "=r"(y[0]), "=r"(y[1])
               : "r"(column));
  float c[4] = {1, 1, 1, 1};
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};\n"
      : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3])
      : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]), "f"(c[0]), "f"(c[1]),
        "f"(c[2]), "f"(c[3]));
  const int group = t / 4, pair = 2 * (t % 4);
  d[group * 8 + pair] = c[0];
  d[group * 8 + pair + 1] = c[1];
  d[(group + 8) * 8 + pair] = c[2];
  d[(group + 8) * 8 + pair + 1] = c[3];
}

int main() {
  Array<half> a(256), b(128);
  Array<float> d(128);
  for (int i = 0; i < 256; ++i) a[i] = __float2half(static_cast<float>(i % 7 - 3));
  for (int i = 0; i < 128; ++i) b[i] = __float2half(static_cast<float>(i % 5 - 2));
  a.up();
  b.up();
  product<<<1, 32>>>(a.device, b.device, d.device);
  d.down();
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 8; ++j) {
      int sum = 1;
      for (int k = 0; k < 16; ++k) sum += ((i * 16 + k) % 7 - 3) * ((k * 8 + j) % 5 - 2);
      CHECK(d[i * 8 + j] == sum);
    }
  }
  return ok();
}
