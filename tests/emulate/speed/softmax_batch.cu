// SPDX-License-Identifier: Apache-2.0
// The softmax of each row of a batch: three passes over global memory, one block per row.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#ifndef ROWS
#define ROWS 8192
#endif
constexpr int width = 1024;
constexpr int threads = 256;

template <class F>
__device__ float reduce(float* shared, float mine, F combine) {
  shared[threadIdx.x] = mine;
  __syncthreads();
  for (int half = threads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      shared[threadIdx.x] = combine(shared[threadIdx.x], shared[threadIdx.x + half]);
    }
    __syncthreads();
  }
  const float result = shared[0];
  __syncthreads();
  return result;
}

struct Larger {
  __device__ float operator()(float a, float b) const { return a > b ? a : b; }
};
struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};

__global__ void softmax(const float* in, float* out) {
  __shared__ float shared[threads];
  const float* row = in + static_cast<size_t>(blockIdx.x) * width;
  float* result = out + static_cast<size_t>(blockIdx.x) * width;
  float largest = -INFINITY;
  for (int i = threadIdx.x; i < width; i += threads) largest = fmaxf(largest, row[i]);
  largest = reduce(shared, largest, Larger());
  float sum = 0;
  for (int i = threadIdx.x; i < width; i += threads) {
    const float power = expf(row[i] - largest);
    result[i] = power;
    sum += power;
  }
  sum = reduce(shared, sum, Sum());
  for (int i = threadIdx.x; i < width; i += threads) result[i] /= sum;
}

int main() {
  const size_t count = static_cast<size_t>(ROWS) * width;
  std::vector<float> in(count), out(count);
  for (size_t i = 0; i < count; ++i) in[i] = static_cast<float>(i * 7919 % 1013) / 100;
  float *device, *result;
  cudaMalloc(&device, count * sizeof(float));
  cudaMalloc(&result, count * sizeof(float));
  cudaMemcpy(device, in.data(), count * sizeof(float), cudaMemcpyHostToDevice);
  softmax<<<ROWS, threads>>>(device, result);
  cudaMemcpy(out.data(), result, count * sizeof(float), cudaMemcpyDeviceToHost);
  for (int row = 0; row < ROWS; row += 61) {
    const size_t begin = static_cast<size_t>(row) * width;
    double sum = 0;
    for (int i = 0; i < width; ++i) sum += std::exp(static_cast<double>(in[begin + i]));
    for (int i = 0; i < width; ++i) {
      const double expected = std::exp(static_cast<double>(in[begin + i])) / sum;
      if (std::fabs(out[begin + i] - expected) > 1e-6) return std::printf("row %d\n", row), 1;
    }
  }
  cudaFree(device);
  cudaFree(result);
  return 0;
}
