// SPDX-License-Identifier: Apache-2.0
// Four floats at once are at a multiple of 16 bytes.
#include "../programs/check.cuh"

__global__ void copy(const float* in, float4* out) {
  out[threadIdx.x] = *reinterpret_cast<const float4*>(in + 4 * threadIdx.x);  // expect: misaligned
}

int main() {
  Array<float> in(160);
  Array<float4> out(32);
#ifdef BUG
  copy<<<1, 32>>>(in.device + 1, out.device);
#else
  copy<<<1, 32>>>(in.device + 4, out.device);
#endif
  return ok();
}
