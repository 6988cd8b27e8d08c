// SPDX-License-Identifier: Apache-2.0
// The pixel on the left, by way of a variable of its own.
#include "check.cuh"

__global__ void slope(const int* in, int* out, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  const int left = x - 1;
#ifdef BUG
  out[y * width + x] = in[y * width + x] - in[y * width + left];
#else
  out[y * width + x] = in[y * width + x] - (left >= 0 ? in[y * width + left] : 0);
#endif
}

int main() {
  const int width = 40, height = 20;
  Array<int> in(width * height), out(width * height);
  for (int i = 0; i < in.size; ++i) in[i] = i % 13;
  in.up();
  slope<<<dim3(3, 2), dim3(16, 16)>>>(in.device, out.device, width, height);
  out.down();
  for (int i = 0; i < in.size; ++i) CHECK(out[i] == in[i] - (i % width > 0 ? in[i - 1] : 0));
  return ok();
}
