// SPDX-License-Identifier: Apache-2.0
// Each thread writes a byte of its own.
#include "../programs/check.cuh"

__global__ void bytes(unsigned char* out) {
  __shared__ unsigned char kept[64];
  const int t = threadIdx.x;
#ifdef BUG
  kept[t % 32] = static_cast<unsigned char>(t);  // expect: race
#else
  kept[t] = static_cast<unsigned char>(t);
#endif
  __syncthreads();
  out[t] = kept[t % 32];
}

int main() {
  Array<unsigned char> out(64);
  bytes<<<1, 64>>>(out.device);
  return ok();
}
