// SPDX-License-Identifier: Apache-2.0
// An image whose size is no multiple of the block's.
#include "check.cuh"

__global__ void invert(const unsigned char* in, unsigned char* out, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
#ifdef BUG
  out[y * width + x] = 255 - in[y * width + x];
#else
  if (x < width && y < height) out[y * width + x] = 255 - in[y * width + x];
#endif
}

int main() {
  const int width = 50, height = 37;
  Array<unsigned char> in(width * height), out(width * height);
  for (int i = 0; i < in.size; ++i) in[i] = i % 251;
  in.up();
  invert<<<dim3(4, 3), dim3(16, 16)>>>(in.device, out.device, width, height);
  out.down();
  for (int i = 0; i < in.size; ++i) CHECK(out[i] == 255 - in[i]);
  return ok();
}
