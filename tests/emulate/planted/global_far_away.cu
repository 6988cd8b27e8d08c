// SPDX-License-Identifier: Apache-2.0
// An index that is far out ends the kernel.
#include "../programs/check.cuh"

__global__ void read(const int* in, const int* where, int* out) {
  out[threadIdx.x] = in[where[threadIdx.x]];  // expect: out_of_bounds
}

int main() {
  Array<int> in(64), where(32), out(32);
  for (int i = 0; i < 32; ++i) where[i] = i;
#ifdef BUG
  where[9] = 1 << 28;
#endif
  where.up();
  read<<<1, 32>>>(in.device, where.device, out.device);
  return ok();
}
