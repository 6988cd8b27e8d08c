// SPDX-License-Identifier: Apache-2.0
// A transpose through a padded tile.
#include "check.cuh"

__global__ void transpose(const int* in, int* out, int width, int height) {
  __shared__ int tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x;
  const int y = blockIdx.y * 32;
  for (int i = threadIdx.y; i < 32; i += 8) {
    if (x < width && y + i < height) tile[i][threadIdx.x] = in[(y + i) * width + x];
  }
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  for (int i = threadIdx.y; i < 32; i += 8) {
    const int row = blockIdx.x * 32 + i;
    if (row < width && x < height) out[row * height + x] = tile[threadIdx.x][i];
  }
}

int main() {
  const int width = 70, height = 45;
  Array<int> in(width * height), out(width * height);
  for (int i = 0; i < width * height; ++i) in[i] = i;
  in.up();
  transpose<<<dim3(3, 2), dim3(32, 8)>>>(in.device, out.device, width, height);
  out.down();
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) CHECK(out[x * height + y] == y * width + x);
  }
  return ok();
}
