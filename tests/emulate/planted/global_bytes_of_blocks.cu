// SPDX-License-Identifier: Apache-2.0
// Blocks own one byte of a word each: several read the first, and the last adds to its own.
#include "../programs/check.cuh"

__global__ void add(unsigned char* same, int* out) {
  if (blockIdx.x < 3) {
    out[blockIdx.x * 64 + threadIdx.x] = same[0];  // expect: race
  } else if (threadIdx.x == 0) {
#ifdef BUG
    same[0]++;  // expect: race
#else
    same[1]++;
#endif
  }
}

int main() {
  Array<unsigned char> same(4);
  Array<int> out(192);
  add<<<4, 64>>>(same.device, out.device);
  return ok();
}
