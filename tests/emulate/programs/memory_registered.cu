// SPDX-License-Identifier: Apache-2.0
// Host memory that is registered and mapped.
#include <vector>

#include "check.cuh"

__global__ void add(int* data) { data[threadIdx.x] += 5; }

int main() {
  std::vector<int> host(64, 1);
  CUDA(cudaHostRegister(host.data(), 64 * sizeof(int), cudaHostRegisterMapped));
  CHECK(cudaHostRegister(host.data(), 64, 0) == cudaErrorHostMemoryAlreadyRegistered);
  cudaGetLastError();
  int* device = nullptr;
  CUDA(cudaHostGetDevicePointer(&device, host.data(), 0));
  add<<<1, 64>>>(device);
  CUDA(cudaDeviceSynchronize());
  for (int v : host) CHECK(v == 6);
  CUDA(cudaHostUnregister(host.data()));
  int* mapped = nullptr;
  CUDA(cudaHostAlloc(&mapped, 64 * sizeof(int), cudaHostAllocMapped | cudaHostAllocPortable));
  for (int i = 0; i < 64; ++i) mapped[i] = i;
  CUDA(cudaHostGetDevicePointer(&device, mapped, 0));
  add<<<1, 64>>>(device);
  CUDA(cudaDeviceSynchronize());
  for (int i = 0; i < 64; ++i) CHECK(mapped[i] == i + 5);
  CUDA(cudaFreeHost(mapped));
  return ok();
}
