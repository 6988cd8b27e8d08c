// SPDX-License-Identifier: Apache-2.0
// Compiled alone: a symbol of C is the whole file's.
// A kernel of one extern "C" declaration, without braces around it, reverses a tile.
#include "../programs/check.cuh"

extern "C" __global__ void reverse_tile(int* data) {
  __shared__ int tile[64];
  tile[threadIdx.x] = data[threadIdx.x];  // expect: race
#ifndef BUG
  __syncthreads();
#endif
  data[threadIdx.x] = tile[63 - threadIdx.x];  // expect: race
}

int main() {
  Array<int> data(64);
  for (int i = 0; i < 64; ++i) data[i] = i;
  data.up();
  reverse_tile<<<1, 64>>>(data.device);
  return ok();
}
