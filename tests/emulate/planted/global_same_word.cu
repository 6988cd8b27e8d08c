// SPDX-License-Identifier: Apache-2.0
// Two blocks that write one word.
#include "../programs/check.cuh"

__global__ void mark(int* out) {
#ifdef BUG
  out[0] = blockIdx.x;  // expect: race
#else
  out[blockIdx.x] = blockIdx.x;
#endif
}

int main() {
  Array<int> out(2);
  mark<<<2, 1>>>(out.device);
  return ok();
}
