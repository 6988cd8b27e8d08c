// SPDX-License-Identifier: Apache-2.0
// A counter that every match raises by itself plus one.
#include "check.cuh"

__global__ void count(const int* values, int wanted, int* found, int n) {
  const int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < n && values[i] == wanted) {
#ifdef BUG
    found[0] = found[0] + 1;
#else
    atomicAdd(&found[0], 1);
#endif
  }
}

int main() {
  const int n = 300;
  Array<int> values(n), found(1);
  for (int i = 0; i < n; ++i) values[i] = i % 10;
  values.up();
  count<<<3, 128>>>(values.device, 4, found.device, n);
  found.down();
  CHECK(found[0] == 30);
  return ok();
}
