// SPDX-License-Identifier: Apache-2.0
// A shared tile of half the size.
#include "check.cuh"

#define T 8
__global__ void flip(const float* in, float* out) {
#ifdef BUG
  __shared__ float tile[T * T / 2];
#else
  __shared__ float tile[T * T];
#endif
  int k = threadIdx.y * T + threadIdx.x;
  tile[k] = in[k];
  __syncthreads();
  out[k] = tile[T * T - 1 - k];
}
int main() {
  Array<float> in(64), out(64);
  for (int i = 0; i < 64; ++i) in[i] = i;
  in.up();
  flip<<<1, dim3(T, T)>>>(in.device, out.device);
  out.down();
  for (int i = 0; i < 64; ++i) CHECK(out[i] == 63 - i);
  return ok();
}
