// SPDX-License-Identifier: Apache-2.0
// Products of a warpgroup by asm statements: operands in shared memory and in registers, sums that
// are added to, groups.
#include <cuda_fp16.h>

#include <cstdint>

#include "check.cuh"

constexpr int m = 64, n = 8, depth = 16;

/// Matrices of 8 rows of 16 bytes each, dense, along m or n first; no swizzle.
__device__ uint64_t describe(const void* tile, int along_k, int along_rows) {
  const auto address = static_cast<uint64_t>(__cvta_generic_to_shared(tile));
  return (address & 0x3ffff) >> 4 | static_cast<uint64_t>(along_k >> 4) << 16 |
         static_cast<uint64_t>(along_rows >> 4) << 32;
}

__global__ void __launch_bounds__(128) multiply(const __half* a, const __half* b, float* c) {
  __shared__ alignas(128) __half left[2][m][8], right[2][n][8];
  const int t = threadIdx.x;
  for (int i = t; i < m * depth; i += 128) left[i % depth / 8][i / depth][i % 8] = a[i];
  for (int i = t; i < n * depth; i += 128) right[i % depth / 8][i / depth][i % 8] = b[i];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  const uint64_t of_a = describe(left, m * 16, 128), of_b = describe(right, n * 16, 128);
  float d[4];
  for (float& one : d) asm volatile("" : "+f"(one)::"memory");
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %6, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, "
      "0;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "l"(of_a), "l"(of_b), "r"(0));
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  // Once more from registers, negated and twice: c = a b - 2 a b.
  const int row = t / 32 * 16 + t % 32 / 4, column = t % 4 * 2;
  uint32_t from[4];
  for (int i = 0; i < 4; ++i) {
    const int r = row + i % 2 * 8, k = column + i / 2 * 8;
    const __half2 pair = __halves2half2(a[r * depth + k], a[r * depth + k + 1]);
    from[i] = *reinterpret_cast<const uint32_t*>(&pair);
  }
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  for (int i = 0; i < 2; ++i) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, "
        "p, %9, 1, 0;\n}"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(from[0]), "r"(from[1]), "r"(from[2]), "r"(from[3]), "l"(of_b), "n"(-1));
  }
  asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < 4; ++i) c[(row + i / 2 * 8) * n + column + i % 2] = d[i];
}

int main() {
  Array<__half> a(m * depth), b(n * depth);
  Array<float> c(m * n);
  for (int i = 0; i < m * depth; ++i) a[i] = __float2half(static_cast<float>(i % 13 - 6));
  for (int i = 0; i < n * depth; ++i) b[i] = __float2half(static_cast<float>(i % 7 - 3));
  a.up();
  b.up();
  multiply<<<2, 128>>>(a.device, b.device, c.device);
  CUDA(cudaGetLastError());
  c.down();
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int k = 0; k < depth; ++k) {
        sum += __half2float(a[i * depth + k]) * __half2float(b[j * depth + k]);
      }
      CHECK(c[i * n + j] == -sum);
    }
  }
  return ok();
}
