// SPDX-License-Identifier: Apache-2.0
// Grey levels of a color picture: a 2-D grid, one thread per pixel.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

__host__ __device__ unsigned char grey_of(int red, int green, int blue) {
  return (77 * red + 150 * green + 29 * blue) >> 8;  // 0.30, 0.59, 0.11
}

__global__ void grey(const unsigned char* color, unsigned char* out, int height, int width) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < height && column < width) {
    const int pixel = row * width + column;
    out[pixel] = grey_of(color[3 * pixel], color[3 * pixel + 1], color[3 * pixel + 2]);
  }
}

int main() {
  const int height = 50, width = 70, pixels = height * width;
  std::vector<unsigned char> color(3 * pixels), out(pixels);
  for (int i = 0; i < 3 * pixels; ++i) color[i] = (i * 37 + i / 11) % 256;
  unsigned char *color_device, *out_device;
  cudaMalloc(&color_device, color.size());
  cudaMalloc(&out_device, out.size());
  cudaMemcpy(color_device, color.data(), color.size(), cudaMemcpyHostToDevice);

  const dim3 block(16, 16);
  const dim3 grid((width + block.x - 1) / block.x, (height + block.y - 1) / block.y);
  grey<<<grid, block>>>(color_device, out_device, height, width);
  cudaMemcpy(out.data(), out_device, out.size(), cudaMemcpyDeviceToHost);

  int error = 0;
  for (int i = 0; i < pixels; ++i) {
    const int wanted = grey_of(color[3 * i], color[3 * i + 1], color[3 * i + 2]);
    error = std::max(error, std::abs(out[i] - wanted));
  }
  std::printf("image_grey: max error %d: %s\n", error, error == 0 ? "PASS" : "FAIL");
  cudaFree(color_device);
  cudaFree(out_device);
  return error == 0 ? 0 : 1;
}
