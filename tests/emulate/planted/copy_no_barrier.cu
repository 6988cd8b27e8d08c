// SPDX-License-Identifier: Apache-2.0
// Who has waited for a copy has waited for its own alone.
#include <cuda_pipeline.h>

#include "../programs/check.cuh"

__global__ void copy(const int* in, int* out) {
  __shared__ int kept[64];
  const int t = threadIdx.x;
  __pipeline_memcpy_async(&kept[t], &in[t], sizeof(int));  // expect: race
  __pipeline_commit();
  __pipeline_wait_prior(0);
#ifndef BUG
  __syncthreads();
#endif
  out[t] = kept[63 - t];  // expect: race
}

int main() {
  Array<int> in(64), out(64);
  for (int i = 0; i < 64; ++i) in[i] = i;
  in.up();
  copy<<<1, 64>>>(in.device, out.device);
  return ok();
}
