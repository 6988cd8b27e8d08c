// SPDX-License-Identifier: Apache-2.0
// Bug: half of the lanes call a shuffle whose mask names all, and meet the others at the next one.
// rung emulate: warp_sync in line 10
#include <cstdio>
#include <vector>

__global__ void sums_of_pairs(const int* x, int* y) {
  int v = x[threadIdx.x];
  if (threadIdx.x < 16) v += __shfl_xor_sync(0xffffffffu, v, 1);
  v += __shfl_xor_sync(0xffffffffu, v, 2);
  y[threadIdx.x] = v;
}

int main() {
  const int n = 32;
  std::vector<int> x(n), y(n);
  for (int i = 0; i < n; ++i) x[i] = i * i;
  int *x_device, *y_device;
  cudaMalloc(&x_device, n * sizeof(int));
  cudaMalloc(&y_device, n * sizeof(int));
  cudaMemcpy(x_device, x.data(), n * sizeof(int), cudaMemcpyHostToDevice);
  sums_of_pairs<<<1, n>>>(x_device, y_device);
  cudaMemcpy(y.data(), y_device, n * sizeof(int), cudaMemcpyDeviceToHost);

  int wrong = 0;
  for (int i = 0; i < n; ++i) {
    const int a = x[i] + (i < 16 ? x[i ^ 1] : 0);
    const int b = x[i ^ 2] + (i < 16 ? x[i ^ 3] : 0);
    wrong += y[i] != a + b;
  }
  std::printf("divergence_bug: %d wrong: %s\n", wrong, wrong == 0 ? "PASS" : "FAIL");
  cudaFree(x_device);
  cudaFree(y_device);
  return wrong == 0 ? 0 : 1;
}
