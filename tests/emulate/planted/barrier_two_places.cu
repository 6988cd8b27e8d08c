// SPDX-License-Identifier: Apache-2.0
// A barrier in both branches: of whole warps, which PTX allows, or of a warp's even and odd lanes.
// The launch goes on either way.
#include "../programs/check.cuh"

__global__ void roles(int* out) {
#ifdef BUG
  const bool first = threadIdx.x % 2 == 0;
#else
  const bool first = threadIdx.x < 32;
#endif
  __shared__ int sums[64];
  if (first) {
    sums[threadIdx.x] = 1;
    __syncthreads();  // expect: barrier
  } else {
    sums[threadIdx.x] = 2;
    __syncthreads();  // expect: barrier
  }
  out[threadIdx.x] = sums[63 - threadIdx.x] + sums[threadIdx.x];
}

int main() {
  Array<int> out(64);
  roles<<<1, 64>>>(out.device);
  out.down();
  for (int i = 0; i < 64; ++i) CHECK(out[i] == 3);
  return ok();
}
