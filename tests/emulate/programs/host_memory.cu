// SPDX-License-Identifier: Apache-2.0
// Page-locked, mapped and registered host memory.
#include "check.cuh"

__global__ void negate(int* p) { p[threadIdx.x] = -p[threadIdx.x]; }

int main() {
  int* locked;
  CUDA(cudaMallocHost(&locked, 64 * sizeof(int)));
  int* mapped;
  CUDA(cudaHostAlloc(&mapped, 32 * sizeof(int), cudaHostAllocMapped));
  int* view;
  CUDA(cudaHostGetDevicePointer(&view, mapped, 0));
  for (int i = 0; i < 32; ++i) mapped[i] = i;
  negate<<<1, 32>>>(view);
  CUDA(cudaDeviceSynchronize());
  for (int i = 0; i < 32; ++i) CHECK(mapped[i] == -i);
  int* own = static_cast<int*>(malloc(32 * sizeof(int)));
  for (int i = 0; i < 32; ++i) own[i] = 2 * i;
  CUDA(cudaHostRegister(own, 32 * sizeof(int), cudaHostRegisterMapped));
  CUDA(cudaHostGetDevicePointer(&view, own, 0));
  negate<<<1, 32>>>(view);
  CUDA(cudaDeviceSynchronize());
  CHECK(own[31] == -62);
  unsigned flags = 0;
  CUDA(cudaHostGetFlags(&flags, mapped));
  CHECK((flags & cudaHostAllocMapped) != 0);
  CUDA(cudaHostUnregister(own));
  CHECK(cudaHostUnregister(own) == cudaErrorHostMemoryNotRegistered);
  CHECK(cudaGetLastError() == cudaErrorHostMemoryNotRegistered);
  CUDA(cudaFreeHost(mapped));
  CUDA(cudaFreeHost(locked));
  free(own);
  return ok();
}
