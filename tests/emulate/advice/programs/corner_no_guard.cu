// SPDX-License-Identifier: Apache-2.0
// Sums of 2 x 2 pixels that leave the image on the right and at the bottom alone.
#include "check.cuh"

__global__ void corners(const float* in, float* out, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  float sum = 0;
  for (int dy = 0; dy <= 1; ++dy) {
    for (int dx = 0; dx <= 1; ++dx) {
#ifdef BUG
      sum += in[x + dx + (y + dy) * width];
#else
      sum += y + dy < height && x + dx < width ? in[x + dx + (y + dy) * width] : 0;
#endif
    }
  }
  out[y * width + x] = sum;
}

int main() {
  const int width = 40, height = 20;
  Array<float> in(width * height), out(width * height);
  for (int i = 0; i < in.size; ++i) in[i] = i % 11;
  in.up();
  corners<<<dim3(3, 2), dim3(16, 16)>>>(in.device, out.device, width, height);
  out.down();
  for (int i = 0; i < in.size; ++i) {
    float sum = 0;
    for (int y = i / width + 0; y <= i / width + 1; ++y) {
      for (int x = i % width + 0; x <= i % width + 1; ++x) {
        if (x >= 0 && x < width && y >= 0 && y < height) sum += in[y * width + x];
      }
    }
    CHECK(out[i] == sum);
  }
  return ok();
}
