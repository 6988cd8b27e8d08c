// SPDX-License-Identifier: Apache-2.0
// The sum of an array: a tree per block in shared memory, one atomicAdd per block.
#include <cstdio>
#include <vector>

constexpr int THREADS = 256;

__global__ void sum_of(const int* x, int* sum, int n) {
  __shared__ int partial[THREADS];
  const int t = threadIdx.x;
  const int i = 2 * blockIdx.x * THREADS + t;
  partial[t] = (i < n ? x[i] : 0) + (i + THREADS < n ? x[i + THREADS] : 0);
  for (int stride = THREADS / 2; stride > 0; stride /= 2) {
    __syncthreads();
    if (t < stride) partial[t] += partial[t + stride];
  }
  if (t == 0) atomicAdd(sum, partial[0]);
}

int main() {
  const int n = 5000;
  std::vector<int> x(n);
  int wanted = 0;
  for (int i = 0; i < n; ++i) wanted += x[i] = i % 17 - 5;
  int *x_device, *sum_device, sum = 0;
  cudaMalloc(&x_device, n * sizeof(int));
  cudaMalloc(&sum_device, sizeof(int));
  cudaMemcpy(x_device, x.data(), n * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemset(sum_device, 0, sizeof(int));

  sum_of<<<(n + 2 * THREADS - 1) / (2 * THREADS), THREADS>>>(x_device, sum_device, n);
  cudaMemcpy(&sum, sum_device, sizeof(int), cudaMemcpyDeviceToHost);

  std::printf("reduction: error %d: %s\n", sum - wanted, sum == wanted ? "PASS" : "FAIL");
  cudaFree(x_device);
  cudaFree(sum_device);
  return sum == wanted ? 0 : 1;
}
