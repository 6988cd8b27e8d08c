// SPDX-License-Identifier: Apache-2.0
// Bits of a set that threads turn on in words they share.
#include "check.cuh"

__global__ void mark(const int* members, unsigned int* set, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    const int m = members[i];
#ifdef BUG
    set[m / 32] |= 1u << (m % 32);
#else
    atomicOr(&set[m / 32], 1u << (m % 32));
#endif
  }
}

int main() {
  const int n = 100;
  Array<int> members(n);
  Array<unsigned int> set(8);
  unsigned int expected[8] = {};
  for (int i = 0; i < n; ++i) {
    members[i] = i * 5 % 256;
    expected[members[i] / 32] |= 1u << members[i] % 32;
  }
  members.up();
  mark<<<2, 64>>>(members.device, set.device, n);
  set.down();
  for (int w = 0; w < 8; ++w) CHECK(set[w] == expected[w]);
  return ok();
}
