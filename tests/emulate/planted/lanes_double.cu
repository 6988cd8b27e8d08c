// SPDX-License-Identifier: Apache-2.0
// Two lanes write one double.
#include "../programs/check.cuh"

__global__ void halves(double* out) {
#ifdef BUG
  out[threadIdx.x / 2] = threadIdx.x * 0.5;  // expect: race
#else
  if (threadIdx.x % 2 == 0) out[threadIdx.x / 2] = threadIdx.x * 0.5;
#endif
}

int main() {
  Array<double> out(32);
  halves<<<1, 64>>>(out.device);
  return ok();
}
