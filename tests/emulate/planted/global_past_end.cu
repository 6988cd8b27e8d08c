// SPDX-License-Identifier: Apache-2.0
// The guard of the last block.
#include "../programs/check.cuh"

__global__ void fill(int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef BUG
  if (i <= n)
#else
  if (i < n)
#endif
    out[i] = i;  // expect: out_of_bounds
}

int main() {
  Array<int> out(100);
  fill<<<4, 32>>>(out.device, 100);
  return ok();
}
