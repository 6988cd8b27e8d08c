// SPDX-License-Identifier: Apache-2.0
// The element before, by an unsigned index that wraps: i - 1 >= 0 would always hold.
#include "check.cuh"

__global__ void previous(const int* in, int* out, size_t n) {
  const size_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
#ifdef BUG
  out[i] = in[i] - in[i - 1];
#else
  out[i] = in[i] - (i > 0 ? in[i - 1] : 0);
#endif
}

int main() {
  const int n = 200;
  Array<int> in(n), out(n);
  for (int i = 0; i < n; ++i) in[i] = 1 + i % 17;
  in.up();
  previous<<<4, 64>>>(in.device, out.device, n);
  out.down();
  for (int i = 0; i < n; ++i) CHECK(out[i] == in[i] - (i > 0 ? in[i - 1] : 0));
  return ok();
}
