// SPDX-License-Identifier: Apache-2.0
// A blur of 3 x 3 pixels whose helper reads beyond all four sides of the image.
#include "check.cuh"

__device__ float pixel(const float* in, int x, int y, int width, int height) {
#ifdef BUG
  return in[y * width + x];  // expect: out_of_bounds
#else
  return x >= 0 && x < width && y >= 0 && y < height ? in[y * width + x] : 0;
#endif
}
__global__ void blur(float* out, const float* in, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  float sum = 0;
  for (int k = 0; k < 9; ++k) sum += pixel(in, x + k % 3 - 1, y + k / 3 - 1, width, height);
  out[y * width + x] = sum;
}

int main() {
  const int width = 33, height = 20;
  Array<float> in(width * height), out(width * height);
  for (int i = 0; i < in.size; ++i) in[i] = 1;
  in.up();
  blur<<<dim3(3, 2), dim3(16, 16)>>>(out.device, in.device, width, height);
  out.down();
  CHECK(out[0] == 4 && out[1] == 6 && out[width + 1] == 9 && out[in.size - 1] == 4);
  return ok();
}
// says: x >= 0 && x < width
// says: y >= 0 && y <
