// SPDX-License-Identifier: Apache-2.0
// A product takes one of the sums of another that is in flight.
#include <cuda_fp16.h>

#include <cstdint>

#include "../programs/check.cuh"

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
  float d[8] = {}, other = 0;
#ifdef BUG
  float& third = d[7];
#else
  float& third = other;
#endif
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, "
      "%8, %9, p, 1, 1, 0, 0;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
        "+f"(d[7])
      : "l"(of_a), "l"(of_b));
  float e[3] = {};
  asm volatile(  // expect: launch
      "{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, "
      "0;\n}"
      : "+f"(e[0]), "+f"(e[1]), "+f"(third), "+f"(e[2])
      : "l"(of_a), "l"(of_b));
  asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
  const int row = t / 32 * 16 + t % 32 / 4, column = t % 4 * 2;
  for (int i = 0; i < 8; ++i) {
    c[(row + i / 2 % 2 * 8) * n + column + i / 4 * 8 + i % 2] = d[i];
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
#ifdef BUG
  CHECK(cudaDeviceSynchronize() == cudaErrorLaunchFailure);
  return 0;
#endif
  CUDA(cudaGetLastError());
  c.down();
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int k = 0; k < depth; ++k) {
        sum += __half2float(a[i * depth + k]) * __half2float(b[j * depth + k]);
      }
      CHECK(c[i * n + j] == sum);
    }
  }
  return ok();
}
