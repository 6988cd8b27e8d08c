// SPDX-License-Identifier: Apache-2.0
// Vectors of 16 bytes, of which the last word alone differs.
#include "../programs/check.cuh"

__global__ void boxes(float4* out) {
  const int t = threadIdx.x;
#ifdef BUG
  out[t % 8] = make_float4(1, 2, 3, t);  // expect: race
#else
  out[t % 8] = make_float4(1, 2, 3, t % 8);
#endif
}

int main() {
  Array<float4> out(8);
  boxes<<<1, 32>>>(out.device);
  return ok();
}
