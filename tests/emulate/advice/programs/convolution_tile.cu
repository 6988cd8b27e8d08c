// SPDX-License-Identifier: Apache-2.0
// A 2-D convolution: a tile with a halo that a strided loop fills.
#include "check.cuh"

constexpr int side = 16, radius = 2, wide = side + 2 * radius;
__constant__ float weights[5];

__global__ void blur(const float* image, float* result, int width, int height) {
  __shared__ float tile[wide * wide];
  const int thread = threadIdx.y * side + threadIdx.x;
  for (int i = thread; i < wide * wide; i += side * side) {
    const int x = blockIdx.x * side + i % wide - radius;
    const int y = blockIdx.y * side + i / wide - radius;
    tile[i] = x >= 0 && y >= 0 && x < width && y < height ? image[y * width + x] : 0;
  }
#ifndef BUG
  __syncthreads();
#endif
  float sum = 0;
  for (int dy = 0; dy <= 2 * radius; ++dy) {
    for (int dx = 0; dx <= 2 * radius; ++dx) {
      sum += weights[dy] * weights[dx] * tile[(threadIdx.y + dy) * wide + threadIdx.x + dx];
    }
  }
  result[(blockIdx.y * side + threadIdx.y) * width + blockIdx.x * side + threadIdx.x] = sum;
}

int main() {
  const int width = 32, height = 32;
  Array<float> image(width * height), result(width * height);
  for (int i = 0; i < image.size; ++i) image[i] = i % 19;
  const float host[5] = {1, 2, 3, 2, 1};
  CUDA(cudaMemcpyToSymbol(weights, host, sizeof host));
  image.up();
  blur<<<dim3(2, 2), dim3(side, side)>>>(image.device, result.device, width, height);
  result.down();
  for (int i = 0; i < image.size; ++i) {
    float sum = 0;
    for (int d = 0; d < 25; ++d) {
      const int x = i % width + d % 5 - radius, y = i / width + d / 5 - radius;
      if (x < 0 || y < 0 || x >= width || y >= height) continue;
      sum += host[d / 5] * host[d % 5] * image[y * width + x];
    }
    CHECK(result[i] == sum);
  }
  return ok();
}
