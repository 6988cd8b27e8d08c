// SPDX-License-Identifier: Apache-2.0
// A stencil with a halo in shared memory and weights in constant memory.
#include "check.cuh"

#define RADIUS 3
__constant__ float weights[2 * RADIUS + 1];

__global__ void stencil(const float* in, float* out, int n) {
  __shared__ float tile[128 + 2 * RADIUS];
  const int i = blockIdx.x * blockDim.x + threadIdx.x, local = threadIdx.x + RADIUS;
  tile[local] = i < n ? in[i] : 0;
  if (threadIdx.x < RADIUS) {
    tile[local - RADIUS] = i >= RADIUS ? in[i - RADIUS] : 0;
    tile[local + blockDim.x] = i + blockDim.x < n ? in[i + blockDim.x] : 0;
  }
  __syncthreads();
  if (i >= n) return;
  float sum = 0;
  for (int offset = -RADIUS; offset <= RADIUS; ++offset)
    sum += weights[offset + RADIUS] * tile[local + offset];
  out[i] = sum;
}

int main() {
  const int n = 500;
  float host[2 * RADIUS + 1] = {1, 2, 3, 4, 3, 2, 1};
  CUDA(cudaMemcpyToSymbol(weights, host, sizeof host));
  Array<float> in(n), out(n);
  for (int i = 0; i < n; ++i) in[i] = static_cast<float>(i % 11);
  in.up();
  stencil<<<(n + 127) / 128, 128>>>(in.device, out.device, n);
  out.down();
  for (int i = 0; i < n; ++i) {
    float sum = 0;
    for (int o = -RADIUS; o <= RADIUS; ++o)
      sum += i + o >= 0 && i + o < n ? host[o + RADIUS] * in[i + o] : 0;
    CHECK(out[i] == sum);
  }
  return ok();
}
