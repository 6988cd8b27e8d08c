// SPDX-License-Identifier: Apache-2.0
// A kernel in one line, whose array is declared there, too.
#include "check.cuh"

// clang-format off
#ifdef BUG
__global__ void next(const int* in, int* out) { __shared__ int s[33]; s[threadIdx.x] = in[threadIdx.x]; __syncthreads(); out[threadIdx.x] = s[threadIdx.x] + s[threadIdx.x + 1]; }
#else
__global__ void next(const int* in, int* out) { __shared__ int s[33]; s[threadIdx.x] = in[threadIdx.x]; __syncthreads(); out[threadIdx.x] = s[threadIdx.x] + (threadIdx.x < 32 ? s[threadIdx.x + 1] : 0); }
#endif
// clang-format on

int main() {
  const int n = 33;
  Array<int> in(n), out(n);
  for (int i = 0; i < n; ++i) in[i] = 1 + i % 17;
  in.up();
  next<<<1, n>>>(in.device, out.device);
  out.down();
  for (int i = 0; i < n; ++i) CHECK(out[i] == in[i] + (i + 1 < n ? in[i + 1] : 0));
  return ok();
}
