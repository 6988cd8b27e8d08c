// SPDX-License-Identifier: Apache-2.0
// A blur of 5 x 5 pixels, whose neighbors are computed first, without a guard.
#include "check.cuh"

const int radius = 2;
__constant__ float weights[25];

__global__ void blur(float* out, const float* in, int width, int height) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (column >= width || row >= height) return;
  float sum = 0;
  for (int dy = -radius; dy <= radius; dy++) {
    for (int dx = -radius; dx <= radius; dx++) {
      int x = column + dx, y = row + dy;
#ifndef BUG
      if (x < 0 || x >= width || y < 0 || y >= height) continue;
#endif
      sum += weights[(dy + radius) * 5 + dx + radius] * in[y * width + x];  // expect: out_of_bounds
    }
  }
  out[row * width + column] = sum;
}

int main() {
  const int width = 40, height = 24;
  Array<float> in(width * height), out(width * height);
  float ones[25];
  for (float& one : ones) one = 1;
  CUDA(cudaMemcpyToSymbol(weights, ones, sizeof ones));
  for (int i = 0; i < in.size; ++i) in[i] = 1;
  in.up();
  blur<<<dim3(3, 2), dim3(16, 16)>>>(out.device, in.device, width, height);
  out.down();
  CHECK(out[0] == 9 && out[2 * width + 2] == 25 && out[in.size - 1] == 9);
  return ok();
}
// says: y >= 0 && y < height && x >= 0 && x < width
// never: dx <
