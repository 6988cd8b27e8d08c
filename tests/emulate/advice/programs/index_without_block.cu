// SPDX-License-Identifier: Apache-2.0
// An index that every block begins at zero again.
#include "check.cuh"

__global__ void copy(const int* from, int* to, int n) {
#ifdef BUG
  const int i = threadIdx.x;
#else
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
#endif
  if (i < n) to[i] = from[i] + i + static_cast<int>(blockIdx.x);
}

int main() {
  const int n = 256;
  Array<int> from(n), to(n);
  for (int i = 0; i < n; ++i) from[i] = i;
  from.up();
  copy<<<4, 64>>>(from.device, to.device, n);
  to.down();
  for (int i = 0; i < n; ++i) CHECK(to[i] == 2 * i + i / 64);
  return ok();
}
