// SPDX-License-Identifier: Apache-2.0
// The source of an asynchronous copy is written again by another thread once the copy has landed.
#include <cuda_pipeline.h>

#include "../programs/check.cuh"

__global__ void shift(float* data) {
  __shared__ float kept[64];
  const int t = threadIdx.x;
  __pipeline_memcpy_async(&kept[t], &data[t], sizeof(float));  // expect: race
  __pipeline_commit();
#ifdef BUG
  __syncthreads();
  data[63 - t] = -1;  // expect: race
  __syncthreads();
  __pipeline_wait_prior(0);
#else
  __pipeline_wait_prior(0);
  __syncthreads();
  data[63 - t] = -1;
#endif
  __syncthreads();
  data[64 + t] = kept[63 - t];
}

int main() {
  Array<float> data(128);
  for (int i = 0; i < 64; ++i) data[i] = static_cast<float>(i);
  data.up();
  shift<<<1, 64>>>(data.device);
#ifndef BUG
  data.down();
  for (int i = 0; i < 64; ++i) CHECK(data[i] == -1 && data[64 + i] == 63 - i);
#endif
  return ok();
}
