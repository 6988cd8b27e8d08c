// SPDX-License-Identifier: Apache-2.0
// Bug: no guard for the neighbors of pixels at the edges.
// rung emulate: out_of_bounds in line 16
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void box_blur(const unsigned char* in, unsigned char* out, int height, int width) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  int sum = 0, count = 0;
  for (int dy = -1; dy <= 1; ++dy) {
    for (int dx = -1; dx <= 1; ++dx) {
      sum += in[(y + dy) * width + x + dx];
      ++count;
    }
  }
  out[y * width + x] = sum / count;
}

int main() {
  const int height = 40, width = 60;
  std::vector<unsigned char> in(height * width), out(in.size());
  for (size_t i = 0; i < in.size(); ++i) in[i] = (i * 53 + i / 7) % 256;
  unsigned char *in_device, *out_device;
  cudaMalloc(&in_device, in.size());
  cudaMalloc(&out_device, out.size());
  cudaMemcpy(in_device, in.data(), in.size(), cudaMemcpyHostToDevice);

  const dim3 block(16, 16), grid((width + 15) / 16, (height + 15) / 16);
  box_blur<<<grid, block>>>(in_device, out_device, height, width);
  cudaMemcpy(out.data(), out_device, out.size(), cudaMemcpyDeviceToHost);

  int error = 0;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      int sum = 0, count = 0;
      for (int v = std::max(y - 1, 0); v <= std::min(y + 1, height - 1); ++v) {
        for (int u = std::max(x - 1, 0); u <= std::min(x + 1, width - 1); ++u, ++count) {
          sum += in[v * width + u];
        }
      }
      error = std::max(error, std::abs(out[y * width + x] - sum / count));
    }
  }
  std::printf("box_blur_bug: max error %d: %s\n", error, error == 0 ? "PASS" : "FAIL");
  cudaFree(in_device);
  cudaFree(out_device);
  return error == 0 ? 0 : 1;
}
