// SPDX-License-Identifier: Apache-2.0
// A sum that halves the number of threads in each step.
#include "check.cuh"

__global__ void sum(const float* in, float* out, int n) {
  __shared__ float data[256];
  unsigned int tid = threadIdx.x;
  unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  data[tid] = i < n ? in[i] : 0;
  __syncthreads();
  for (unsigned int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (tid < s) {
      data[tid] += data[tid + s];
    }
#ifndef BUG
    __syncthreads();
#endif
  }
  if (tid == 0) out[blockIdx.x] = data[0];
}

int main() {
  const int n = 1000;
  Array<float> in(n), out(4);
  for (int i = 0; i < n; ++i) in[i] = i % 9;
  in.up();
  sum<<<4, 256>>>(in.device, out.device, n);
  out.down();
  float total = 0, expected = 0;
  for (int b = 0; b < 4; ++b) total += out[b];
  for (int i = 0; i < n; ++i) expected += in[i];
  CHECK(total == expected);
  return ok();
}
