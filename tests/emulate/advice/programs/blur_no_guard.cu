// SPDX-License-Identifier: Apache-2.0
// A blur of 3 x 3 pixels that leaves the image at all four sides.
#include "check.cuh"

__global__ void blur(const float* in, float* out, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  float sum = 0;
  for (int dy = -1; dy <= 1; ++dy) {
    for (int dx = -1; dx <= 1; ++dx) {
#ifdef BUG
      sum += in[(y + dy) * width + (x + dx)];
#else
      const bool inside = y + dy >= 0 && y + dy < height && x + dx >= 0 && x + dx < width;
      sum += inside ? in[(y + dy) * width + (x + dx)] : 0;
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
  blur<<<dim3(3, 2), dim3(16, 16)>>>(in.device, out.device, width, height);
  out.down();
  for (int i = 0; i < in.size; ++i) {
    float sum = 0;
    for (int y = i / width + -1; y <= i / width + 1; ++y) {
      for (int x = i % width + -1; x <= i % width + 1; ++x) {
        if (x >= 0 && x < width && y >= 0 && y < height) sum += in[y * width + x];
      }
    }
    CHECK(out[i] == sum);
  }
  return ok();
}
