// SPDX-License-Identifier: Apache-2.0
// Lanes behind the end of the array return before the sum of the warp, which reads them.
#include "../programs/check.cuh"

__global__ void sum(const int* in, int* total, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef BUG
  if (i >= n) return;
  int v = in[i];
#else
  int v = i < n ? in[i] : 0;
#endif
  for (int d = 16; d > 0; d /= 2) {
    v += __shfl_down_sync(0xffffffffu, v, d);  // expect: warp_sync
  }
  if (i % 32 == 0) atomicAdd(total, v);
}

int main() {
  const int n = 50;
  Array<int> in(n), total(1);
  for (int i = 0; i < n; ++i) in[i] = 1;
  in.up();
  total.up();
  sum<<<1, 64>>>(in.device, total.device, n);
  total.down();
#ifndef BUG
  CHECK(total[0] == n);
#endif
  return ok();
}
