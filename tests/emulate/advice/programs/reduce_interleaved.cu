// SPDX-License-Identifier: Apache-2.0
// A sum by doubled strides, without the barrier in front of the loop.
#include "check.cuh"

__global__ void reduce0(const int* g_in, int* g_out) {
  extern __shared__ int sdata[];
  const int tid = threadIdx.x;
  sdata[tid] = g_in[blockIdx.x * blockDim.x + tid];
#ifndef BUG
  __syncthreads();
#endif
  for (int s = 1; s < blockDim.x; s *= 2) {
    if (tid % (2 * s) == 0) sdata[tid] += sdata[tid + s];
    __syncthreads();
  }
  if (tid == 0) g_out[blockIdx.x] = sdata[0];
}

int main() {
  Array<int> in(512), out(4);
  for (int i = 0; i < 512; ++i) in[i] = i % 29;
  in.up();
  reduce0<<<4, 128, 128 * sizeof(int)>>>(in.device, out.device);
  out.down();
  for (int b = 0; b < 4; ++b) {
    int sum = 0;
    for (int i = 0; i < 128; ++i) sum += in[b * 128 + i];
    CHECK(out[b] == sum);
  }
  return ok();
}
