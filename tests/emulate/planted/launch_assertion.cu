// SPDX-License-Identifier: Apache-2.0
// What a kernel asserts holds.
#include <cassert>

#include "../programs/check.cuh"

__global__ void check(const int* in) {
  assert(in[threadIdx.x] >= 0);  // expect: launch
}

int main() {
  Array<int> in(32);
#ifdef BUG
  in[7] = -1;
#endif
  in.up();
  check<<<1, 32>>>(in.device);
  cudaDeviceSynchronize();
  std::printf("OK\n");
  return 0;
}
