// SPDX-License-Identifier: Apache-2.0
// Sixteen bins for thirty-two lanes: by one instruction two of them write to each.
#include "../programs/check.cuh"

__global__ void put(int* out) {
  __shared__ int kept[32];
  const int t = threadIdx.x;
#ifdef BUG
  kept[t % 16] = t;  // expect: race
#else
  kept[t] = t;
#endif
  __syncthreads();
  out[t] = kept[t % 16];
}

int main() {
  Array<int> out(32);
  put<<<1, 32>>>(out.device);
  return ok();
}
