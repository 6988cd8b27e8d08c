// SPDX-License-Identifier: Apache-2.0
// A 2-D convolution with zeros outside, one thread per pixel, its mask in constant memory.
#include <cstdio>
#include <cstdlib>
#include <vector>

#ifndef SIZE
#define SIZE 2048
#endif
constexpr int radius = 4;
constexpr int side = 2 * radius + 1;

__constant__ float mask[side][side];

__global__ void convolve(const float* in, float* out, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  float sum = 0;
  for (int dy = -radius; dy <= radius; ++dy) {
    for (int dx = -radius; dx <= radius; ++dx) {
      if (y + dy >= 0 && y + dy < height && x + dx >= 0 && x + dx < width) {
        sum += mask[dy + radius][dx + radius] * in[(y + dy) * width + x + dx];
      }
    }
  }
  out[y * width + x] = sum;
}

int main() {
  const int n = SIZE;
  std::vector<float> in(n * n), out(n * n);
  for (int i = 0; i < n * n; ++i) in[i] = static_cast<float>(i % 11 - 5);
  float weights[side][side];
  for (int i = 0; i < side * side; ++i) weights[i / side][i % side] = static_cast<float>(i % 3);
  const size_t bytes = in.size() * sizeof(float);
  float *device, *result;
  cudaMalloc(&device, bytes);
  cudaMalloc(&result, bytes);
  cudaMemcpy(device, in.data(), bytes, cudaMemcpyHostToDevice);
  cudaMemcpyToSymbol(mask, weights, sizeof(weights));
  const dim3 block(32, 8);
  convolve<<<dim3((n + 31) / 32, (n + 7) / 8), block>>>(device, result, n, n);
  cudaMemcpy(out.data(), result, bytes, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 4000; ++i) {
    const int x = i * 7919 % n, y = i * 104729 % n;
    float sum = 0;
    for (int dy = -radius; dy <= radius; ++dy) {
      for (int dx = -radius; dx <= radius; ++dx) {
        if (y + dy < 0 || y + dy >= n || x + dx < 0 || x + dx >= n) continue;
        sum += weights[dy + radius][dx + radius] * in[(y + dy) * n + x + dx];
      }
    }
    if (out[y * n + x] != sum) return std::printf("wrong at %d %d\n", x, y), 1;
  }
  cudaFree(device);
  cudaFree(result);
  return 0;
}
