// SPDX-License-Identifier: Apache-2.0
// A block of no more threads than the kernel's __launch_bounds__ says.
#include "../programs/check.cuh"

__global__ void __launch_bounds__(128) fill(int* out) { out[threadIdx.x] = 1; }

int main() {
  Array<int> out(256);
#ifdef BUG
  fill<<<1, 256>>>(out.device);  // expect: launch
#else
  fill<<<1, 128>>>(out.device);
#endif
  std::printf("OK\n");
  return 0;
}
