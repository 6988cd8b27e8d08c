// SPDX-License-Identifier: Apache-2.0
// Copies to shared memory in two stages by the pipeline's primitives.
#include <cuda_pipeline.h>

#include "check.cuh"

__global__ void sum(const float4* in, float* out, int tiles) {
  __shared__ float4 stage[2][32];
  const int t = threadIdx.x;
  __pipeline_memcpy_async(&stage[0][t], &in[t], sizeof(float4));
  __pipeline_commit();
  float total = 0;
  for (int i = 0; i < tiles; ++i) {
    if (i + 1 < tiles)
      __pipeline_memcpy_async(&stage[(i + 1) % 2][t], &in[(i + 1) * 32 + t], sizeof(float4));
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    const float4 v = stage[i % 2][31 - t];
    total += v.x + v.y + v.z + v.w;
    __syncthreads();
  }
  out[t] = total;
}

int main() {
  Array<float4> in(160);
  Array<float> out(32);
  for (int i = 0; i < 160; ++i) in[i] = make_float4(i, 1, 2, 3);
  in.up();
  sum<<<1, 32>>>(in.device, out.device, 5);
  out.down();
  for (int t = 0; t < 32; ++t) CHECK(out[t] == 5 * (31 - t) + 32 * 10 + 30);
  return ok();
}
