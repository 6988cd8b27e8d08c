// SPDX-License-Identifier: Apache-2.0
// A shared variable of a whole file, used by two functions.
#include "check.cuh"

__shared__ int tile[64];
__shared__ int total;

__device__ void keep(int value) { tile[threadIdx.x] = value; }
__global__ void turn(int* out) {
  if (threadIdx.x == 0) total = 0;
  keep(static_cast<int>(blockIdx.x * 100 + threadIdx.x));
  __syncthreads();
  atomicAdd(&total, 1);
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x] + total;
}

int main() {
  Array<int> out(3 * 64);
  turn<<<3, 64>>>(out.device);
  out.down();
  for (int i = 0; i < out.size; ++i) CHECK(out[i] == i / 64 * 100 + 63 - i % 64 + 64);
  return ok();
}
