// SPDX-License-Identifier: Apache-2.0
// An asynchronous copy is waited for.
#include <cuda_pipeline.h>

#include "../programs/check.cuh"

__global__ void copy(const float* in, float* out) {
  __shared__ float kept[64];
  const int t = threadIdx.x;
  __pipeline_memcpy_async(&kept[t], &in[t], sizeof(float));  // expect: race
  __pipeline_commit();
#ifndef BUG
  __pipeline_wait_prior(0);
#endif
  out[t] = kept[t];  // expect: race
}

int main() {
  Array<float> in(64), out(64);
  for (int i = 0; i < 64; ++i) in[i] = static_cast<float>(i);
  in.up();
  copy<<<1, 64>>>(in.device, out.device);
  return ok();
}
