// SPDX-License-Identifier: Apache-2.0
// A grid has blocks.
#include "../programs/check.cuh"

__global__ void fill(int* out, int n) {
  if (threadIdx.x < n) out[threadIdx.x] = 1;
}

int main() {
  Array<int> out(32);
  int n = 32;
#ifdef BUG
  fill<<<n / 64, 64>>>(out.device, n);  // expect: launch
#else
  fill<<<(n + 63) / 64, 64>>>(out.device, n);
#endif
  std::printf("OK\n");
  return 0;
}
