// SPDX-License-Identifier: Apache-2.0
// Inclusive prefix sums of one block by Kogge and Stone: log2 n steps of up to n - 1 additions.
#include <cstdio>
#include <vector>

constexpr int N = 256;

__global__ void scan(const int* x, int* y) {
  __shared__ int sums[N];
  const int t = threadIdx.x;
  sums[t] = x[t];
  for (int stride = 1; stride < N; stride *= 2) {
    __syncthreads();
    const int sum = t >= stride ? sums[t] + sums[t - stride] : sums[t];
    __syncthreads();  // all have read before one writes
    sums[t] = sum;
  }
  y[t] = sums[t];
}

int main() {
  std::vector<int> x(N), y(N);
  for (int i = 0; i < N; ++i) x[i] = i * i % 23;
  int *x_device, *y_device;
  cudaMalloc(&x_device, N * sizeof(int));
  cudaMalloc(&y_device, N * sizeof(int));
  cudaMemcpy(x_device, x.data(), N * sizeof(int), cudaMemcpyHostToDevice);

  scan<<<1, N>>>(x_device, y_device);
  cudaMemcpy(y.data(), y_device, N * sizeof(int), cudaMemcpyDeviceToHost);

  int wrong = 0;
  for (int i = 0, sum = 0; i < N; ++i) wrong += y[i] != (sum += x[i]);
  std::printf("scan_kogge_stone: %d wrong: %s\n", wrong, wrong == 0 ? "PASS" : "FAIL");
  cudaFree(x_device);
  cudaFree(y_device);
  return wrong == 0 ? 0 : 1;
}
