// SPDX-License-Identifier: Apache-2.0
// An error of a kernel stays until the device is reset; others are reported once.
#include "check.cuh"

__global__ void wrong(int* p) { p[1 << 20] = 1; }
__global__ void right(int* p) { p[threadIdx.x] = 1; }

int main() {
  int* p = nullptr;
  CHECK(cudaMalloc(&p, size_t(1) << 60) == cudaErrorMemoryAllocation);
  CHECK(cudaPeekAtLastError() == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation && cudaGetLastError() == cudaSuccess);
  CUDA(cudaMalloc(&p, 128));
  right<<<1, 2000>>>(p);
  CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
  right<<<1, 32>>>(p);
  CUDA(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(nullptr, p, 4, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  CHECK(cudaStreamQuery(0) == cudaSuccess);
  CUDA(cudaFree(p));
  CUDA(cudaDeviceReset());
  CUDA(cudaMalloc(&p, 128));
  right<<<1, 32>>>(p);
  CUDA(cudaFree(p));
  return ok();
}
