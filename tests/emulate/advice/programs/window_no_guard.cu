// SPDX-License-Identifier: Apache-2.0
// A window of five elements that leaves the array at both ends.
#include "check.cuh"

__global__ void window(const int* in, int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int sum = 0;
#ifdef BUG
  for (int k = -2; k <= 2; ++k) sum += in[i + k];
#else
  for (int k = -2; k <= 2; ++k) sum += i + k >= 0 && i + k < n ? in[i + k] : 0;
#endif
  out[i] = sum;
}

int main() {
  const int n = 200;
  Array<int> in(n), out(n);
  for (int i = 0; i < n; ++i) in[i] = 1 + i % 17;
  in.up();
  window<<<4, 64>>>(in.device, out.device, n);
  out.down();
  for (int i = 0; i < n; ++i) {
    int sum = 0;
    for (int k = i - 2; k <= i + 2; ++k) sum += k >= 0 && k < n ? in[k] : 0;
    CHECK(out[i] == sum);
  }
  return ok();
}
