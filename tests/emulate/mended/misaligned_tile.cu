// SPDX-License-Identifier: Apache-2.0
// Rows of a shared tile that are padded against bank conflicts, and then read as vectors.
#include "check.cuh"

#ifdef BUG
#define PADDING 1
#else
#define PADDING 4
#endif

__global__ void copy(float4* out, const float* in) {
  alignas(16) __shared__ float tile[8][32 + PADDING];
  const int t = threadIdx.x;
  for (int r = 0; r < 8; ++r) tile[r][t] = in[32 * r + t];
  __syncthreads();
  const int row = t / 8 + 4, column = t % 8 * 4;
  const float4 v = *reinterpret_cast<const float4*>(&tile[row][column]);  // expect: misaligned
  out[t] = v;
}

int main() {
  Array<float> in(256);
  Array<float4> out(32);
  for (int i = 0; i < 256; ++i) in[i] = i;
  in.up();
  copy<<<1, 32>>>(out.device, in.device);
  cudaDeviceSynchronize();
#ifndef BUG
  out.down();
  for (int t = 0; t < 32; ++t) CHECK(out[t].x == 128 + 4 * t);
#endif
  std::printf("OK\n");
  return 0;
}
// says: the row length 33 is no multiple of 4
