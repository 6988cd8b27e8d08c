// SPDX-License-Identifier: Apache-2.0
// __syncwarp() orders one warp's lanes, not two warps.
#include "../programs/check.cuh"

__global__ void hand_over(int* out) {
  __shared__ int kept[32];
  const int t = threadIdx.x;
  if (t < 32) kept[t] = 3 * t;  // expect: race
#ifdef BUG
  __syncwarp();
#else
  __syncthreads();
#endif
  if (t >= 32) out[t - 32] = kept[t - 32];  // expect: race
}

int main() {
  Array<int> out(32);
  hand_over<<<1, 64>>>(out.device);
  return ok();
}
