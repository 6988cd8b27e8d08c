// SPDX-License-Identifier: Apache-2.0
// The first lane of each warp writes a word that all of its lanes read.
#include "../programs/check.cuh"

__global__ void offsets(int* out, const int* in) {
  __shared__ int first[4];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (lane == 0) first[warp] = in[warp];  // expect: race
#ifndef BUG
  __syncwarp();
#endif
  out[threadIdx.x] = first[warp] + lane;  // expect: race
}

int main() {
  Array<int> in(4), out(128);
  for (int i = 0; i < 4; ++i) in[i] = i + 5;
  in.up();
  offsets<<<1, 128>>>(out.device, in.device);
  return ok();
}
