// SPDX-License-Identifier: Apache-2.0
// Two halves of one word of shared memory: two warps read one, a third adds to the other.
#include "../programs/check.cuh"

__global__ void add(int* out) {
  __shared__ short half[2];
  if (threadIdx.x < 2) half[threadIdx.x] = 1;
  __syncthreads();
  if (threadIdx.x < 64) {
    out[threadIdx.x] = half[0];  // expect: race
  } else if (threadIdx.x == 64) {
#ifdef BUG
    half[0] = half[0] + 1;  // expect: race
#else
    half[1] = half[1] + 1;
#endif
  }
}

int main() {
  Array<int> out(64);
  add<<<1, 96>>>(out.device);
  return ok();
}
