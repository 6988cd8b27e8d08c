// SPDX-License-Identifier: Apache-2.0
// Events: times grow, and only with timing.
#include "check.cuh"

__global__ void work(float* p) {
  float x = p[threadIdx.x];
  for (int i = 0; i < 100; ++i) x = x * 0.5f + 1;
  p[threadIdx.x] = x;
}

int main() {
  Array<float> data(256);
  cudaEvent_t start, middle, stop, untimed;
  CUDA(cudaEventCreate(&start));
  CUDA(cudaEventCreate(&middle));
  CUDA(cudaEventCreate(&stop));
  CUDA(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
  float ms = -1;
  CHECK(cudaEventElapsedTime(&ms, start, stop) == cudaErrorInvalidResourceHandle);
  cudaGetLastError();
  CUDA(cudaEventRecord(start));
  for (int i = 0; i < 10; ++i) work<<<1, 256>>>(data.device);
  CUDA(cudaEventRecord(middle));
  work<<<1, 256>>>(data.device);
  CUDA(cudaEventRecord(stop, 0));
  CUDA(cudaEventSynchronize(stop));
  float first = 0, second = 0, both = 0;
  CUDA(cudaEventElapsedTime(&first, start, middle));
  CUDA(cudaEventElapsedTime(&second, middle, stop));
  CUDA(cudaEventElapsedTime(&both, start, stop));
  CHECK(first > 0 && second > 0 && std::fabs(first + second - both) < 1e-3f);
  CUDA(cudaEventRecord(untimed));
  CHECK(cudaEventElapsedTime(&ms, start, untimed) == cudaErrorInvalidResourceHandle);
  cudaGetLastError();
  return ok();
}
