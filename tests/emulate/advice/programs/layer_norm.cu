// SPDX-License-Identifier: Apache-2.0
// Two reductions in one array: the first total is overwritten while others read it.
#include "check.cuh"

__global__ void layernorm(const float* x, float* y, int d) {
  extern __shared__ float red[];
  const float v = x[blockIdx.x * d + threadIdx.x];
  red[threadIdx.x] = v;
  __syncthreads();
  for (int s = blockDim.x >> 1; s >= 1; s >>= 1) {
    if (threadIdx.x < s) red[threadIdx.x] += red[threadIdx.x + s];
    __syncthreads();
  }
  const float mean = red[0] / d;
#ifndef BUG
  __syncthreads();
#endif
  red[threadIdx.x] = (v - mean) * (v - mean);
  __syncthreads();
  for (int s = blockDim.x >> 1; s >= 1; s >>= 1) {
    if (threadIdx.x < s) red[threadIdx.x] += red[threadIdx.x + s];
    __syncthreads();
  }
  y[blockIdx.x * d + threadIdx.x] = (v - mean) * rsqrtf(red[0] / d + 1e-5f);
}
int main() {
  Array<float> x(256), y(256);
  for (int i = 0; i < 256; ++i) x[i] = i % 64 < 32 ? 1 : 3;
  x.up();
  layernorm<<<4, 64, 64 * sizeof(float)>>>(x.device, y.device, 64);
  y.down();
  for (int i = 0; i < 256; ++i) CHECK(std::fabs(y[i] - (i % 64 < 32 ? -1 : 1)) < 1e-3f);
  return ok();
}
