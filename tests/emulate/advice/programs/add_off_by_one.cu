// SPDX-License-Identifier: Apache-2.0
// A vector sum that compares by <=.
#include "check.cuh"

__global__ void add(const int* a, const int* b, int* c, int n) {
  int i = blockDim.x * blockIdx.x + threadIdx.x;
#ifdef BUG
  if (i <= n) {
#else
  if (i < n) {
#endif
    c[i] = a[i] + b[i];
  }
}

int main() {
  const int n = 333;
  Array<int> a(n), b(n), c(n);
  for (int i = 0; i < n; ++i) a[i] = i, b[i] = 2 * i;
  a.up(), b.up();
  add<<<3, 128>>>(a.device, b.device, c.device, n);
  c.down();
  for (int i = 0; i < n; ++i) CHECK(c[i] == 3 * i);
  return ok();
}
