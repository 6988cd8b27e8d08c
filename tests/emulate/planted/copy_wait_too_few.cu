// SPDX-License-Identifier: Apache-2.0
// The last stage of a pipeline is waited for too.
#include <cuda_pipeline.h>

#include "../programs/check.cuh"

__global__ void stages(const int4* in, int* out) {
  __shared__ int4 kept[2][32];
  const int t = threadIdx.x;
  for (int stage = 0; stage < 2; ++stage) {
    __pipeline_memcpy_async(&kept[stage][t], &in[32 * stage + t], sizeof(int4));  // expect: race
    __pipeline_commit();
  }
  int sum = 0;
  __pipeline_wait_prior(1);
  sum += kept[0][t].x;
#ifndef BUG
  __pipeline_wait_prior(0);
#endif
  sum += kept[1][t].x;  // expect: race
  out[t] = sum;
}

int main() {
  Array<int4> in(64);
  Array<int> out(32);
  for (int i = 0; i < 64; ++i) in[i] = make_int4(i, i, i, i);
  in.up();
  stages<<<1, 32>>>(in.device, out.device);
  return ok();
}
