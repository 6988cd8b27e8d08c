// SPDX-License-Identifier: Apache-2.0
// Bug: the bound of the second loop does not count the stride.
// rung emulate: out_of_bounds in line 22
#include <cstdio>
#include <vector>

constexpr int N = 512;

__global__ void scan(const int* x, int* y) {
  __shared__ int sums[N];
  const int t = threadIdx.x;
  sums[t] = x[t];
  sums[t + N / 2] = x[t + N / 2];
  for (int stride = 1; stride < N; stride *= 2) {  // a tree of sums
    __syncthreads();
    const int i = (t + 1) * 2 * stride - 1;
    if (i < N) sums[i] += sums[i - stride];
  }
  for (int stride = N / 4; stride > 0; stride /= 2) {  // the sums between
    __syncthreads();
    const int i = (t + 1) * 2 * stride - 1;
    if (i < N) sums[i + stride] += sums[i];
  }
  __syncthreads();
  y[t] = sums[t];
  y[t + N / 2] = sums[t + N / 2];
}

int main() {
  std::vector<int> x(N), y(N);
  for (int i = 0; i < N; ++i) x[i] = i * i % 23;
  int *x_device, *y_device;
  cudaMalloc(&x_device, N * sizeof(int));
  cudaMalloc(&y_device, N * sizeof(int));
  cudaMemcpy(x_device, x.data(), N * sizeof(int), cudaMemcpyHostToDevice);

  scan<<<1, N / 2>>>(x_device, y_device);
  cudaMemcpy(y.data(), y_device, N * sizeof(int), cudaMemcpyDeviceToHost);

  int wrong = 0;
  for (int i = 0, sum = 0; i < N; ++i) wrong += y[i] != (sum += x[i]);
  std::printf("scan_brent_kung_bug: %d wrong: %s\n", wrong, wrong == 0 ? "PASS" : "FAIL");
  cudaFree(x_device);
  cudaFree(y_device);
  return wrong == 0 ? 0 : 1;
}
