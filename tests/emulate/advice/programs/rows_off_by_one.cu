// SPDX-License-Identifier: Apache-2.0
// Rows that a strided loop follows one column too far.
#include "check.cuh"

__global__ void diff(const int* m, int* d, int rows, int cols) {
  const int r = blockIdx.x;
#ifdef BUG
  for (int c = threadIdx.x; c <= cols; c += blockDim.x)
#else
  for (int c = threadIdx.x; c < cols; c += blockDim.x)
#endif
    d[r * cols + c] = 2 * m[r * cols + c];
}
int main() {
  Array<int> m(120), d(120);
  for (int i = 0; i < 120; ++i) m[i] = i;
  m.up();
  diff<<<8, 32>>>(m.device, d.device, 8, 15);
  d.down();
  for (int i = 0; i < 120; ++i) CHECK(d[i] == 2 * i);
  return ok();
}
