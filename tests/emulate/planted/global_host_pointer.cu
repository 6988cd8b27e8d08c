// SPDX-License-Identifier: Apache-2.0
// Kernels get pointers to the device's memory.
#include "../programs/check.cuh"

__global__ void fill(int* out) { out[threadIdx.x] = 1; }  // expect: out_of_bounds

int main() {
  Array<int> out(32);
#ifdef BUG
  fill<<<1, 32>>>(out.host);
#else
  fill<<<1, 32>>>(out.device);
#endif
  return ok();
}
