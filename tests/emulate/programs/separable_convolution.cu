// SPDX-License-Identifier: Apache-2.0
// A convolution by rows and columns through tiles in shared memory. With -D FULL_SIZE of 3072 x
// 3072 values, 17 times (docs/simulated-gpu.md, "How fast").
#include "check.cuh"

constexpr int radius = 8, per_thread = 8;
__constant__ float weights[2 * radius + 1];

template <int width, int height>
__global__ void rows(const float* in, float* out, int across) {
  __shared__ float tile[height][(per_thread + 2) * width];
  const int x0 = (blockIdx.x * per_thread - 1) * width + threadIdx.x;
  const int y = blockIdx.y * height + threadIdx.y;
  for (int i = 0; i < per_thread + 2; ++i) {
    const int x = x0 + i * width;
    tile[threadIdx.y][threadIdx.x + i * width] = x >= 0 && x < across ? in[y * across + x] : 0;
  }
  __syncthreads();
  for (int i = 1; i <= per_thread; ++i) {
    float sum = 0;
    for (int j = -radius; j <= radius; ++j) {
      sum += weights[radius - j] * tile[threadIdx.y][threadIdx.x + i * width + j];
    }
    out[y * across + x0 + i * width] = sum;
  }
}
template <int width, int height>
__global__ void columns(const float* in, float* out, int across, int down) {
  __shared__ float tile[width][(per_thread + 2) * height + 1];
  const int y0 = (blockIdx.y * per_thread - 1) * height + threadIdx.y;
  const int x = blockIdx.x * width + threadIdx.x;
  for (int i = 0; i < per_thread + 2; ++i) {
    const int y = y0 + i * height;
    tile[threadIdx.x][threadIdx.y + i * height] = y >= 0 && y < down ? in[y * across + x] : 0;
  }
  __syncthreads();
  for (int i = 1; i <= per_thread; ++i) {
    float sum = 0;
    for (int j = -radius; j <= radius; ++j) {
      sum += weights[radius - j] * tile[threadIdx.x][threadIdx.y + i * height + j];
    }
    out[(y0 + i * height) * across + x] = sum;
  }
}

int main() {
#ifdef FULL_SIZE
  const int size = 3072, times = 17;
#else
  const int size = 128, times = 5;
  record_first_launches(2);
#endif
  float host_weights[2 * radius + 1];
  for (int i = 0; i <= 2 * radius; ++i) host_weights[i] = static_cast<float>(i % 5 - 2);
  CUDA(cudaMemcpyToSymbol(weights, host_weights, sizeof host_weights));
  Array<float> in(size * size), between(size * size), out(size * size);
  for (int i = 0; i < size * size; ++i) in[i] = static_cast<float>(i * 7 % 11);
  in.up();
  for (int i = 0; i < times; ++i) {
    rows<16, 4><<<dim3(size / 128, size / 4), dim3(16, 4)>>>(in.device, between.device, size);
    columns<16, 8>
        <<<dim3(size / 16, size / 64), dim3(16, 8)>>>(between.device, out.device, size, size);
  }
  out.down();
  for (int y = 0; y < size; y += size / 16 - 1) {
    for (int x = 0; x < size; x += size / 16 - 1) {
      float expected = 0;
      for (int j = -radius; j <= radius; ++j) {
        float sum = 0;
        for (int i = -radius; i <= radius; ++i) {
          const bool inside = x + i >= 0 && x + i < size && y + j >= 0 && y + j < size;
          if (inside) sum += host_weights[radius - i] * in[(y + j) * size + x + i];
        }
        expected += host_weights[radius - j] * sum;
      }
      CHECK(out[y * size + x] == expected);
    }
  }
  return ok();
}
