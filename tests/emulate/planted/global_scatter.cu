// SPDX-License-Identifier: Apache-2.0
// A permutation gives each element a place of its own.
// Found under some orders: what two threads wrote is told apart by what is left in memory.
#include "../programs/check.cuh"

__global__ void scatter(const int* to, int* out) {
  out[to[threadIdx.x]] = threadIdx.x + 1;  // expect: race
}

int main() {
  Array<int> to(64), out(64);
  for (int i = 0; i < 64; ++i) to[i] = 63 - i;
#ifdef BUG
  to[50] = to[3];
#endif
  to.up();
  scatter<<<1, 64>>>(to.device, out.device);
  return ok();
}
