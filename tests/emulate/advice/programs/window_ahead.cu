// SPDX-License-Identifier: Apache-2.0
// A window of elements ahead, whose width is a parameter: the bound of its loop is not to blame.
#include "check.cuh"

__global__ void ahead(const int* in, int* out, int n, int reach) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int sum = 0;
#ifdef BUG
  for (int k = 0; k <= reach; ++k) sum += in[i + k];
#else
  for (int k = 0; k <= reach; ++k) sum += i + k < n ? in[i + k] : 0;
#endif
  out[i] = sum;
}

int main() {
  const int n = 200;
  Array<int> in(n), out(n);
  for (int i = 0; i < n; ++i) in[i] = 1 + i % 17;
  in.up();
  ahead<<<4, 64>>>(in.device, out.device, n, 3);
  out.down();
  for (int i = 0; i < n; ++i) {
    int sum = 0;
    for (int k = i; k <= i + 3; ++k) sum += k < n ? in[k] : 0;
    CHECK(out[i] == sum);
  }
  return ok();
}
