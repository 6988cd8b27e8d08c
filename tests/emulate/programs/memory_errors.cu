// SPDX-License-Identifier: Apache-2.0
// What allocation and copies refuse.
#include "check.cuh"

int main() {
  void* p = nullptr;
  CHECK(cudaMalloc(&p, static_cast<size_t>(1) << 50) == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaSuccess);
  CUDA(cudaMalloc(&p, 256));
  char host[512];
  CHECK(cudaMemcpy(nullptr, host, 16, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(cudaPeekAtLastError() == cudaErrorInvalidValue);
  CHECK(cudaPeekAtLastError() == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  size_t free = 0, total = 0;
  CUDA(cudaMemGetInfo(&free, &total));
  CHECK(free > 0 && free <= total);
  CUDA(cudaFree(p));
  return ok();
}
