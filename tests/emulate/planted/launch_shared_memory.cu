// SPDX-License-Identifier: Apache-2.0
// Dynamic shared memory within the limit.
#include "../programs/check.cuh"

__global__ void fill(int* out) {
  extern __shared__ int kept[];
  kept[threadIdx.x] = 1;
  out[threadIdx.x] = kept[threadIdx.x];
}

int main() {
  Array<int> out(32);
#ifdef BUG
  fill<<<1, 32, 300 * 1024>>>(out.device);  // expect: launch
#else
  fill<<<1, 32, 30 * 1024>>>(out.device);
#endif
  std::printf("OK\n");
  return 0;
}
