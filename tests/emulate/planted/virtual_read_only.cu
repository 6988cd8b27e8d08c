// SPDX-License-Identifier: Apache-2.0
// Memory is mapped for reading, and written.
#include <cuda.h>

#include "../programs/check.cuh"

__global__ void write_there(int* to) {
  to[threadIdx.x] = 1;  // expect: read_only
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
#ifdef BUG
  const CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
#else
  const CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
#endif
  CUmemAccessDesc access = {wanted.location, flags};
  CHECK(cuMemSetAccess(begin, piece, &access, 1) == 0);
  write_there<<<1, 32>>>(reinterpret_cast<int*>(begin));
#ifdef BUG
  CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
  CUDA(cudaDeviceReset());
#endif
  CHECK(cuMemUnmap(begin, piece) == 0 && cuMemRelease(memory) == 0);
  CHECK(cuMemAddressFree(begin, piece) == 0);
  return ok();
}
