// SPDX-License-Identifier: Apache-2.0
// Bug: the grid is rounded down, since n / 16 divides integers before ceil() rounds.
// rung emulate: uninitialized in line 31
#include <cmath>
#include <cstdio>
#include <vector>

__global__ void multiply(const float* a, const float* b, float* c, int m, int n, int k) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || column >= n) return;
  float sum = 0;
  for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + column];
  c[row * n + column] = sum;
}

int main() {
  const int m = 40, n = 33, k = 31;
  std::vector<float> a(m * k), b(k * n), c(m * n);
  for (int i = 0; i < m * k; ++i) a[i] = i % 7 - 3;
  for (int i = 0; i < k * n; ++i) b[i] = i % 5 - 2;
  float *a_device, *b_device, *c_device;
  cudaMalloc(&a_device, m * k * sizeof(float));
  cudaMalloc(&b_device, k * n * sizeof(float));
  cudaMalloc(&c_device, m * n * sizeof(float));
  cudaMemcpy(a_device, a.data(), m * k * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(b_device, b.data(), k * n * sizeof(float), cudaMemcpyHostToDevice);

  const dim3 block(16, 16);
  const dim3 grid(std::ceil(n / 16), std::ceil(m / 16));
  multiply<<<grid, block>>>(a_device, b_device, c_device, m, n, k);
  cudaMemcpy(c.data(), c_device, m * n * sizeof(float), cudaMemcpyDeviceToHost);

  int wrong = 0;
  for (int row = 0; row < m; ++row) {
    for (int column = 0; column < n; ++column) {
      float sum = 0;
      for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + column];
      wrong += c[row * n + column] != sum;  // whole numbers: exact
    }
  }
  std::printf("matrix_multiply_bug: %d wrong: %s\n", wrong, wrong == 0 ? "PASS" : "FAIL");
  cudaFree(a_device);
  cudaFree(b_device);
  cudaFree(c_device);
  return wrong == 0 ? 0 : 1;
}
