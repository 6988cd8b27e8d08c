// SPDX-License-Identifier: Apache-2.0
// Even threads add their right neighbor's value: a barrier at the end of both branches.
#include "check.cuh"

__global__ void pairs(const int* in, int* out) {
  __shared__ int tile[64];
  const int t = threadIdx.x;
#ifdef BUG
  if (t % 2 == 0) {
    tile[t] = in[t];
    __syncthreads();
  } else {
    tile[t] = 2 * in[t];
    __syncthreads();
  }
#else
  tile[t] = t % 2 == 0 ? in[t] : 2 * in[t];
  __syncthreads();
#endif
  out[t] = t % 2 == 0 ? tile[t] + tile[t + 1] : 0;
}

int main() {
  Array<int> in(64), out(64);
  for (int i = 0; i < 64; ++i) in[i] = i;
  in.up();
  pairs<<<1, 64>>>(in.device, out.device);
  out.down();
  for (int i = 0; i < 64; i += 2) CHECK(out[i] == i + 2 * (i + 1));
  return ok();
}
