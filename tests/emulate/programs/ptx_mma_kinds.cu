// SPDX-License-Identifier: Apache-2.0
// mma.sync of bfloat16 and of tf32.
#include <cuda_bf16.h>

#include "check.cuh"

__device__ unsigned pack(float a, float b) {
  return __bfloat16_as_ushort(__float2bfloat16_rn(a)) |
         static_cast<unsigned>(__bfloat16_as_ushort(__float2bfloat16_rn(b))) << 16;
}
/// A[i][k] = i + k and B[k][j] = k - j; the same numbers in either format.
__global__ void products(float* out) {
  const int t = threadIdx.x, group = t / 4, pair = t % 4;
  unsigned a[4], b[2];
  const auto left = [](int i, int k) { return static_cast<float>(i + k); };
  const auto right = [](int k, int j) { return static_cast<float>(k - j); };
  for (int r = 0; r < 4; ++r) {
    const int i = group + r % 2 * 8, k = 2 * pair + r / 2 * 8;
    a[r] = pack(left(i, k), left(i, k + 1));
  }
  for (int r = 0; r < 2; ++r)
    b[r] = pack(right(2 * pair + 8 * r, group), right(2 * pair + 8 * r + 1, group));
  float c[4] = {0, 0, 0, 0};
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  for (int r = 0; r < 4; ++r) a[r] = __float_as_uint(left(group + r % 2 * 8, pair + r / 2 * 4));
  for (int r = 0; r < 2; ++r) b[r] = __float_as_uint(right(pair + 4 * r, group));
  float d[4] = {0, 0, 0, 0};
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  for (int r = 0; r < 4; ++r) {
    const int at = (group + r / 2 * 8) * 8 + 2 * pair + r % 2;
    out[at] = c[r];
    out[128 + at] = d[r];
  }
}

int main() {
  Array<float> out(256);
  products<<<1, 32>>>(out.device);
  out.down();
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 8; ++j) {
      float sum[2] = {};
      for (int k = 0; k < 16; ++k) {
        sum[0] += static_cast<float>((i + k) * (k - j));
        if (k < 8) sum[1] += static_cast<float>((i + k) * (k - j));
      }
      CHECK(out[8 * i + j] == sum[0] && out[128 + 8 * i + j] == sum[1]);
    }
  }
  return ok();
}
