// SPDX-License-Identifier: Apache-2.0
// An array that is declared in the line of the access.
#include "check.cuh"

// clang-format off
__global__ void next(const int* in, int* out) {
  const int t = threadIdx.x;
#ifdef BUG
  __shared__ int s[33]; s[t] = in[t]; __syncthreads(); out[t] = s[t] + s[t + 1];
#else
  __shared__ int s[33]; s[t] = in[t]; __syncthreads(); out[t] = s[t] + (t < 32 ? s[t + 1] : 0);
#endif
}
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
