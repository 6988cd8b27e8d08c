// SPDX-License-Identifier: Apache-2.0
// A barrier within the branch of the threads that load the halo.
#include "check.cuh"

__global__ void stencil(const float* in, float* out, int n) {
  __shared__ float tile[128 + 2];
  const int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x + 1;
  tile[t] = i < n ? in[i] : 0;  // expect: race
  if (threadIdx.x < 32) {
    if (threadIdx.x == 0) tile[0] = i > 0 ? in[i - 1] : 0;
    if (threadIdx.x == 1)
      tile[129] = (blockIdx.x + 1) * blockDim.x < n ? in[(blockIdx.x + 1) * blockDim.x] : 0;
#ifdef BUG
    __syncthreads();
#endif
  }
#ifndef BUG
  __syncthreads();
#endif
  if (i < n) out[i] = tile[t - 1] + tile[t] + tile[t + 1];  // expect: race
}

int main() {
  Array<float> in(256), out(256);
  for (int i = 0; i < 256; ++i) in[i] = 1;
  in.up();
  stencil<<<2, 128>>>(in.device, out.device, 256);
  out.down();
  for (int i = 0; i < 256; ++i) CHECK(out[i] == (i == 0 || i == 255 ? 2 : 3));
  return ok();
}
// says: is reached by 32 of 128 threads
