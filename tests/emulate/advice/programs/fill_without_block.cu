// SPDX-License-Identifier: Apache-2.0
// An index without the block, in a kernel that only writes.
#include "check.cuh"

__global__ void fill(int* out, int n) {
#ifdef BUG
  const int k = threadIdx.x;
#else
  const int k = blockIdx.x * blockDim.x + threadIdx.x;
#endif
  if (k < n) out[k] = 3 * k + blockIdx.x;
}
int main() {
  Array<int> out(128);
  fill<<<4, 32>>>(out.device, 128);
  out.down();
  for (int i = 0; i < 128; ++i) CHECK(out[i] == 3 * i + i / 32);
  return ok();
}
