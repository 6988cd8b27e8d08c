// SPDX-License-Identifier: Apache-2.0
// Bytes of one word are written by several lanes each for itself, but not one byte by two.
#include "../programs/check.cuh"

__global__ void letters(char* out) {
  __shared__ char kept[32];
  const int t = threadIdx.x;
#ifdef BUG
  kept[t % 24] = 'a' + t;  // expect: race
#else
  kept[t] = 'a' + t;
#endif
  __syncthreads();
  out[t] = kept[t % 24];
}

int main() {
  Array<char> out(32);
  letters<<<1, 32>>>(out.device);
  return ok();
}
