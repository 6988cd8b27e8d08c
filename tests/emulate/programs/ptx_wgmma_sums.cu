// SPDX-License-Identifier: Apache-2.0
// Products of a warpgroup whose sums are variables of several kinds, in no order.
#include <cuda_fp16.h>

#include <cstdint>

#include "check.cuh"

constexpr int m = 64, n = 16, depth = 16;

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
  // d holds what the registers 5 and 1 do, and so on.
  float first = 0, d[2], last = 0;
  struct {
    int before;
    float low, high;
  } pair[2];
  for (float& one : d) one = 0;
  for (auto& one : pair) one = {7, 0, 0};
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  for (int round = 0; round < 2; ++round) {
    // The second is issued while the first is in flight, and adds to it.
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %10, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, "
        "%8, %9, p, 1, 1, 0, 0;\n}"
        : "+f"(last), "+f"(d[1]), "+f"(pair[0].low), "+f"(pair[1].high), "+f"(pair[1].low),
          "+f"(d[0]), "+f"(pair[0].high), "+f"(first)
        : "l"(of_a), "l"(of_b), "r"(round));
  }
  asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
  const float sums[] = {last,        d[1], pair[0].low,  pair[1].high,
                        pair[1].low, d[0], pair[0].high, first};
  const int row = t / 32 * 16 + t % 32 / 4, column = t % 4 * 2;
  for (int i = 0; i < 8; ++i) {
    c[(row + i / 2 % 2 * 8) * n + column + i / 4 * 8 + i % 2] =
        pair[i % 2].before == 7 ? sums[i] : -1.0f;
  }
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
      CHECK(c[i * n + j] == 2 * sum);
    }
  }
  return ok();
}
