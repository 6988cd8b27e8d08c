// SPDX-License-Identifier: Apache-2.0
// A minimum that many threads compare and set.
#include "check.cuh"

__global__ void nearest(const int* d, int* best, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
#ifdef BUG
    *best = min(*best, d[i]);
#else
    atomicMin(best, d[i]);
#endif
}
int main() {
  Array<int> d(500), best(1);
  best[0] = 1 << 30;
  for (int i = 0; i < 500; ++i) d[i] = 1000 - i;
  d.up(), best.up();
  nearest<<<2, 64>>>(d.device, best.device, 500);
  best.down();
  CHECK(best[0] == 501);
  return ok();
}
