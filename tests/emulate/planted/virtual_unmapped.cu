// SPDX-License-Identifier: Apache-2.0
// Memory is unmapped before the kernel runs that uses it.
#include <cuda.h>

#include "../programs/check.cuh"

__global__ void write_there(int* to) {
  to[threadIdx.x] = 1;  // expect: use_after_free
}

int main() {
  CUmemAllocationProp wanted = {};
  wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  size_t piece = 0;
  CUmemGenericAllocationHandle memory;
  CUdeviceptr begin;
  CHECK(cuMemGetAllocationGranularity(&piece, &wanted, CU_MEM_ALLOC_GRANULARITY_MINIMUM) == 0);
  CHECK(cuMemCreate(&memory, piece, &wanted, 0) == 0);
  CHECK(cuMemAddressReserve(&begin, piece, 0, 0, 0) == 0);
  CHECK(cuMemMap(begin, piece, 0, memory, 0) == 0);
  CUmemAccessDesc access = {wanted.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CHECK(cuMemSetAccess(begin, piece, &access, 1) == 0);
#ifdef BUG
  CHECK(cuMemUnmap(begin, piece) == 0);
#endif
  write_there<<<1, 32>>>(reinterpret_cast<int*>(begin));
#ifdef BUG
  CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
  CUDA(cudaDeviceReset());
#endif
#ifndef BUG
  CHECK(cuMemUnmap(begin, piece) == 0);
#endif
  CHECK(cuMemRelease(memory) == 0);
  CHECK(cuMemAddressFree(begin, piece) == 0);
  return ok();
}
