// SPDX-License-Identifier: Apache-2.0
// A kernel in one line, with an array named as a member of threadIdx.
#include "check.cuh"

// clang-format off
#ifdef BUG
__global__ void twice(int* x, int* y, int n) { int i = threadIdx.x; if (i <= n) y[i] = 2 * x[i]; }
#else
__global__ void twice(int* x, int* y, int n) { int i = threadIdx.x; if (i < n) y[i] = 2 * x[i]; }
#endif
// clang-format on

int main() {
  const int n = 200;
  Array<int> in(n), out(n);
  for (int i = 0; i < n; ++i) in[i] = 1 + i % 17;
  in.up();
  twice<<<1, 256>>>(in.device, out.device, n);
  out.down();
  for (int i = 0; i < n; ++i) CHECK(out[i] == 2 * in[i]);
  return ok();
}
