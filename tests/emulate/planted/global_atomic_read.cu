// SPDX-License-Identifier: Apache-2.0
// A counter that others still change is not read plainly.
#include "../programs/check.cuh"

__global__ void number(int* counter, int* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef BUG
  out[i] = *counter;      // expect: race
  atomicAdd(counter, 1);  // expect: race
#else
  out[i] = atomicAdd(counter, 1);
#endif
}

int main() {
  Array<int> counter(1), out(128);
  number<<<2, 64>>>(counter.device, out.device);
  return ok();
}
