// SPDX-License-Identifier: Apache-2.0
// The last element of a shared array.
#include "../programs/check.cuh"

__global__ void shift(int* out) {
  __shared__ int kept[64];
  const int t = threadIdx.x;
  kept[t] = t;
  __syncthreads();
#ifdef BUG
  out[t] = kept[t + 1];  // expect: out_of_bounds
#else
  out[t] = kept[(t + 1) % 64];
#endif
}

int main() {
  Array<int> out(64);
  shift<<<1, 64>>>(out.device);
  return ok();
}
