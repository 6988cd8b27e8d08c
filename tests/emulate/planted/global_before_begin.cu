// SPDX-License-Identifier: Apache-2.0
// The first thread has no left neighbor.
#include "../programs/check.cuh"

__global__ void difference(const int* in, int* out) {
  const int i = threadIdx.x;
#ifndef BUG
  if (i > 0)
#endif
    out[i] = in[i] - in[i - 1];  // expect: out_of_bounds
}

int main() {
  Array<int> in(64), out(64);
  difference<<<1, 64>>>(in.device, out.device);
  return ok();
}
