// SPDX-License-Identifier: Apache-2.0
// A transposition by a tile that is read before it is full.
#include "check.cuh"

__global__ void transpose(const float* in, float* out, int width, int height) {
  __shared__ float block[32][33];
  int x = blockIdx.x * 32 + threadIdx.x;
  int y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) block[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];
#ifndef BUG
  __syncthreads();
#endif
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) out[(y + j) * height + x] = block[threadIdx.x][threadIdx.y + j];
}

int main() {
  const int width = 64, height = 96;
  Array<float> in(width * height), out(width * height);
  for (int i = 0; i < in.size; ++i) in[i] = i;
  in.up();
  transpose<<<dim3(2, 3), dim3(32, 8)>>>(in.device, out.device, width, height);
  out.down();
  for (int i = 0; i < in.size; ++i) CHECK(out[i % width * height + i / width] == in[i]);
  return ok();
}
