// SPDX-License-Identifier: Apache-2.0
// The same of one with another grid.
#include "../programs/check.cuh"

__global__ void sum(const int* in, int* out) {
#ifdef BUG
  *out += in[blockIdx.x];  // expect: race
#else
  atomicAdd(out, in[blockIdx.x]);
#endif
}

int main() {
  record_first_launches(4);
  Array<int> in(2), out(1);
  for (int i = 0; i <= 50; ++i) sum<<<i == 50 ? 2 : 1, 1>>>(in.device, out.device);
  return ok();
}
