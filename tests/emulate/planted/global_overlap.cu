// SPDX-License-Identifier: Apache-2.0
// Blocks whose ranges do not overlap.
#include "../programs/check.cuh"

__global__ void fill(int* out, int each) {
  int end = each;
#ifdef BUG
  ++end;
#endif
  for (int i = threadIdx.x; i < end; i += blockDim.x) {
    if (blockIdx.x * each + i < 4 * each) out[blockIdx.x * each + i] = blockIdx.x;  // expect: race
  }
}

int main() {
  Array<int> out(400);
  fill<<<4, 32>>>(out.device, 100);
  return ok();
}
