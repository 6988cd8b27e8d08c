// SPDX-License-Identifier: Apache-2.0
// A block does not wait for another: two launches do.
#include "../programs/check.cuh"

__global__ void fill(int* data) { data[32 * blockIdx.x + threadIdx.x] = blockIdx.x + 1; }
__global__ void read(const int* data, int* out) {
  out[threadIdx.x] = data[(32 * (blockIdx.x + 1) + threadIdx.x) % 64];
}
__global__ void both(int* data, int* out) {
  data[32 * blockIdx.x + threadIdx.x] = blockIdx.x + 1;  // expect: race
  __syncthreads();
  out[32 * blockIdx.x + threadIdx.x] =
      data[(32 * (blockIdx.x + 1) + threadIdx.x) % 64];  // expect: race
}

int main() {
  Array<int> data(64), out(64);
#ifdef BUG
  both<<<2, 32>>>(data.device, out.device);
#else
  fill<<<2, 32>>>(data.device);
  read<<<1, 32>>>(data.device, out.device);
#endif
  return ok();
}
