// SPDX-License-Identifier: Apache-2.0
// One sum on the CPU and on the GPU, with the times of both. Their additions are in different
// orders, so that the results are not equal: they agree within a bound that grows with n.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <vector>

constexpr int BLOCK = 256;

__global__ void sum_blocks(const float* x, float* sums, int n) {
  __shared__ float values[BLOCK];
  const int t = threadIdx.x, i = blockIdx.x * BLOCK + t;
  values[t] = i < n ? x[i] : 0;
  for (int stride = BLOCK / 2; stride > 0; stride /= 2) {
    __syncthreads();
    if (t < stride) values[t] += values[t + stride];
  }
  if (t == 0) sums[blockIdx.x] = values[0];
}

int main() {
  const int n = 10000, blocks = (n + BLOCK - 1) / BLOCK;
  std::vector<float> x(n), sums(blocks);
  for (int i = 0; i < n; ++i) x[i] = 1.0f / (i + 1);

  const auto begin = std::chrono::steady_clock::now();
  float on_cpu = 0;
  for (int i = 0; i < n; ++i) on_cpu += x[i];
  const std::chrono::duration<float, std::milli> cpu = std::chrono::steady_clock::now() - begin;

  float *x_device, *sums_device;
  cudaEvent_t events[4];
  for (cudaEvent_t& event : events) cudaEventCreate(&event);
  cudaMalloc(&x_device, n * sizeof(float));
  cudaMalloc(&sums_device, blocks * sizeof(float));
  cudaEventRecord(events[0]);
  cudaMemcpy(x_device, x.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  cudaEventRecord(events[1]);
  sum_blocks<<<blocks, BLOCK>>>(x_device, sums_device, n);
  cudaEventRecord(events[2]);
  cudaMemcpy(sums.data(), sums_device, blocks * sizeof(float), cudaMemcpyDeviceToHost);
  cudaEventRecord(events[3]);
  cudaEventSynchronize(events[3]);
  float on_gpu = 0, there = 0, kernel = 0, back = 0;
  for (const float sum : sums) on_gpu += sum;
  cudaEventElapsedTime(&there, events[0], events[1]);
  cudaEventElapsedTime(&kernel, events[1], events[2]);
  cudaEventElapsedTime(&back, events[2], events[3]);

  float bound = 0;  // n roundings, each of half a unit in the last place
  for (const float value : x) bound += n * 6e-8f * value;
  const bool same = std::fabs(on_cpu - on_gpu) <= bound;
  std::printf("cpu_against_gpu: CPU %.3f ms, copies %.3f ms, kernel %.3f ms: %s\n", cpu.count(),
              there + back, kernel, same ? "PASS" : "FAIL");
  for (cudaEvent_t event : events) cudaEventDestroy(event);
  cudaFree(x_device);
  cudaFree(sums_device);
  return same ? 0 : 1;
}
