// SPDX-License-Identifier: Apache-2.0
// That all lanes write one value to a word does no harm; that each writes its own does.
#include "../programs/check.cuh"

__global__ void find(const int* in, int* found) {
  const int t = threadIdx.x;
#ifdef BUG
  if (in[t] > 7) *found = t;  // expect: race
#else
  if (in[t] > 7) *found = 1;
#endif
}

int main() {
  Array<int> in(32), found(1);
  for (int i = 0; i < 32; ++i) in[i] = i % 11;
  in.up();
  find<<<1, 32>>>(in.device, found.device);
  return ok();
}
