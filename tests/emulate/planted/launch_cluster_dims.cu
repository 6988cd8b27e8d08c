// SPDX-License-Identifier: Apache-2.0
// A grid of whole clusters.
#include "../programs/check.cuh"

__global__ void __cluster_dims__(4, 1, 1) fill(int* out) { out[blockIdx.x] = 1; }

int main() {
  Array<int> out(12);
#ifdef BUG
  fill<<<10, 1>>>(out.device);  // expect: launch
#else
  fill<<<12, 1>>>(out.device);
#endif
  std::printf("OK\n");
  return 0;
}
