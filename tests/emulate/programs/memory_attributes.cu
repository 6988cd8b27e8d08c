// SPDX-License-Identifier: Apache-2.0
// What the runtime knows of a pointer, and of how much memory there is.
#include "check.cuh"

__managed__ int managed_variable;

int main() {
  int *device = nullptr, *host = nullptr, *managed = nullptr, local = 0;
  size_t free_before = 0, free_after = 0, total = 0;
  CUDA(cudaMemGetInfo(&free_before, &total));
  CUDA(cudaMalloc(&device, 1 << 20));
  CUDA(cudaMemGetInfo(&free_after, &total));
  CHECK(free_after < free_before && free_before <= total);
  CUDA(cudaMallocHost(&host, 64));
  CUDA(cudaMallocManaged(&managed, 64));
  cudaPointerAttributes a;
  CUDA(cudaPointerGetAttributes(&a, device + 5));
  CHECK(a.type == cudaMemoryTypeDevice && a.devicePointer == device + 5 && a.device == 0);
  CUDA(cudaPointerGetAttributes(&a, host));
  CHECK(a.type == cudaMemoryTypeHost && a.hostPointer == host);
  CUDA(cudaPointerGetAttributes(&a, managed));
  CHECK(a.type == cudaMemoryTypeManaged);
  CUDA(cudaPointerGetAttributes(&a, &local));
  CHECK(a.type == cudaMemoryTypeUnregistered);
  CUDA(cudaMemPrefetchAsync(managed, 64, 0));
  managed_variable = 3;
  CHECK(managed_variable == 3);
  CUDA(cudaFree(device));
  CUDA(cudaFreeHost(host));
  CUDA(cudaFree(managed));
  return ok();
}
