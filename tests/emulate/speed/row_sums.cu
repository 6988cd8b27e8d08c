// SPDX-License-Identifier: Apache-2.0
// Sums of the rows of a square matrix, by one thread per row and by one block per row.
#include <cstdio>
#include <cstdlib>
#include <vector>

#ifndef SIZE
#define SIZE 4096
#endif
constexpr int threads = 256;

__global__ void sum_by_thread(const float* matrix, float* sums, int n) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n) return;
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += matrix[row * n + i];
  sums[row] = sum;
}

__global__ void sum_by_block(const float* matrix, float* sums, int n) {
  __shared__ float partial[threads];
  const float* row = matrix + static_cast<size_t>(blockIdx.x) * n;
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += threads) sum += row[i];
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int half = threads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = partial[0];
}

int main() {
  const int n = SIZE;
  std::vector<float> matrix(static_cast<size_t>(n) * n), sums(n), expected(n);
  for (int row = 0; row < n; ++row) {
    for (int i = 0; i < n; ++i) {
      matrix[static_cast<size_t>(row) * n + i] = static_cast<float>((row + i) % 5);
      expected[row] += static_cast<float>((row + i) % 5);
    }
  }
  float *device, *result;
  cudaMalloc(&device, matrix.size() * sizeof(float));
  cudaMalloc(&result, n * sizeof(float));
  cudaMemcpy(device, matrix.data(), matrix.size() * sizeof(float), cudaMemcpyHostToDevice);
  sum_by_thread<<<(n + threads - 1) / threads, threads>>>(device, result, n);
  cudaMemcpy(sums.data(), result, n * sizeof(float), cudaMemcpyDeviceToHost);
  if (sums != expected) return std::puts("by threads: wrong"), 1;
  sum_by_block<<<n, threads>>>(device, result, n);
  cudaMemcpy(sums.data(), result, n * sizeof(float), cudaMemcpyDeviceToHost);
  if (sums != expected) return std::puts("by blocks: wrong"), 1;
  cudaFree(device);
  cudaFree(result);
  return 0;
}
