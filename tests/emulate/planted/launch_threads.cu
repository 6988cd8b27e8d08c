// SPDX-License-Identifier: Apache-2.0
// At most 1024 threads per block; who does not ask never knows.
#include "../programs/check.cuh"

__global__ void fill(int* out) { out[threadIdx.x] = 1; }

int main() {
  Array<int> out(2048);
#ifdef BUG
  fill<<<1, 2048>>>(out.device);  // expect: launch
#else
  fill<<<1, 1024>>>(out.device);
#endif
  std::printf("OK\n");
  return 0;
}
