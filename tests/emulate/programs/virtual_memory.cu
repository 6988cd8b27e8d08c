// SPDX-License-Identifier: Apache-2.0
// Addresses, memory and mappings by hand: a vector that grows in place, aliases, handles.
#include <cuda.h>
#include <unistd.h>

#include "check.cuh"

#define DRIVER(call) CHECK((call) == CUDA_SUCCESS)
#define INVALID(call) CHECK((call) == CUDA_ERROR_INVALID_VALUE)

__global__ void fill(int* to, size_t count, int value) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    to[i] = value;
  }
}
__global__ void add_up(const int* from, size_t stride, int count, int* sum) {
  for (int i = threadIdx.x; i < count; i += blockDim.x) atomicAdd(sum, from[i * stride]);
}

CUmemAllocationProp properties() {
  CUmemAllocationProp made = {};
  made.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  made.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  made.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return made;
}
void allow(CUdeviceptr address, size_t bytes, CUmemAccess_flags flags) {
  CUmemAccessDesc access = {};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.flags = flags;
  DRIVER(cuMemSetAccess(address, bytes, &access, 1));
}
unsigned long long access_at(CUdeviceptr address) {
  unsigned long long flags = 99;
  const CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  DRIVER(cuMemGetAccess(&flags, &here, address));
  return flags;
}
int* pointer(CUdeviceptr address) { return reinterpret_cast<int*>(address); }

/// Three pieces adjacent; copies and kernels go over their borders.
void grows(size_t piece) {
  const CUmemAllocationProp wanted = properties();
  CUdeviceptr begin = 0;
  DRIVER(cuMemAddressReserve(&begin, 4 * piece, 0, 0, 0));
  const size_t ints = piece / sizeof(int);
  for (int i = 0; i < 3; ++i) {
    CUmemGenericAllocationHandle memory;
    DRIVER(cuMemCreate(&memory, piece, &wanted, 0));
    DRIVER(cuMemMap(begin + i * piece, piece, 0, memory, 0));
    DRIVER(cuMemRelease(memory));  // it lives on where it is mapped
    INVALID(cuMemRelease(memory));
    allow(begin + i * piece, piece, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    fill<<<8, 128>>>(pointer(begin) + i * ints, ints, i + 1);
  }
  Array<int> sum(1);
  add_up<<<1, 32>>>(pointer(begin), ints, 3, sum.device);
  sum.down();
  CHECK(sum[0] == 6);
  int across[2] = {};
  CUDA(cudaMemcpy(across, pointer(begin) + ints - 1, sizeof across, cudaMemcpyDeviceToHost));
  CHECK(across[0] == 1 && across[1] == 2);
  CHECK(cudaMemcpy(across, pointer(begin) + 3 * ints - 1, sizeof across, cudaMemcpyDeviceToHost) ==
        cudaErrorInvalidValue);
  CHECK(cudaMemset(pointer(begin) + 3 * ints, 0, 4) == cudaErrorInvalidValue);
  // Whole mappings alone are unmapped; a range goes when nothing is mapped there.
  INVALID(cuMemUnmap(begin, piece / 2));
  INVALID(cuMemUnmap(begin, 4 * piece));
  INVALID(cuMemAddressFree(begin, 4 * piece));
  DRIVER(cuMemUnmap(begin, 3 * piece));
  INVALID(cuMemUnmap(begin, piece));
  INVALID(cuMemAddressFree(begin, piece));
  DRIVER(cuMemAddressFree(begin, 4 * piece));
}

/// One piece of memory at two places, and then at another.
void aliases(size_t piece) {
  const CUmemAllocationProp wanted = properties();
  CUmemGenericAllocationHandle memory, same;
  CUdeviceptr begin = 0;
  DRIVER(cuMemAddressReserve(&begin, 2 * piece, 4 * piece, 0, 0));
  CHECK(begin % (4 * piece) == 0);
  DRIVER(cuMemCreate(&memory, piece, &wanted, 0));
  DRIVER(cuMemMap(begin, piece, 0, memory, 0));
  allow(begin, piece, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  fill<<<1, 32>>>(pointer(begin), 32, -1);
  DRIVER(cuMemMap(begin + piece, piece, 0, memory, 0));
  CHECK(access_at(begin + piece) == CU_MEM_ACCESS_FLAGS_PROT_NONE);
  allow(begin + piece, piece, CU_MEM_ACCESS_FLAGS_PROT_READ);
  CHECK(access_at(begin + piece + 8) == CU_MEM_ACCESS_FLAGS_PROT_READ);
  Array<int> sum(1);
  add_up<<<1, 32>>>(pointer(begin + piece), 1, 32, sum.device);
  sum.down();
  CHECK(sum[0] == -32);
  CHECK(cudaMemset(pointer(begin + piece), 0, 4) != cudaSuccess);
  cudaGetLastError();
  DRIVER(cuMemRetainAllocationHandle(&same, pointer(begin + piece) + 5));
  DRIVER(cuMemRelease(memory));
  DRIVER(cuMemUnmap(begin, 2 * piece));
  DRIVER(cuMemMap(begin, piece, 0, same, 0));
  allow(begin, piece, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  int kept = 0;
  CUDA(cudaMemcpy(&kept, pointer(begin) + 31, sizeof kept, cudaMemcpyDeviceToHost));
  CHECK(kept == -1);
  // As a descriptor, which is the same memory once more.
  int descriptor = -1;
  CUmemGenericAllocationHandle imported;
  DRIVER(
      cuMemExportToShareableHandle(&descriptor, same, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  DRIVER(cuMemImportFromShareableHandle(&imported, reinterpret_cast<void*>((size_t)descriptor),
                                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  CHECK(close(descriptor) == 0);
  DRIVER(cuMemMap(begin + piece, piece, 0, imported, 0));
  allow(begin + piece, piece, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  fill<<<1, 32>>>(pointer(begin + piece), 32, 7);
  CUDA(cudaMemcpy(&kept, pointer(begin), sizeof kept, cudaMemcpyDeviceToHost));
  CHECK(kept == 7);
  CUmemAllocationProp told;
  DRIVER(cuMemGetAllocationPropertiesFromHandle(&told, imported));
  CHECK(told.location.id == 0 && told.type == CU_MEM_ALLOCATION_TYPE_PINNED);
  DRIVER(cuMemUnmap(begin, 2 * piece));
  DRIVER(cuMemRelease(same));
  DRIVER(cuMemRelease(imported));
  DRIVER(cuMemAddressFree(begin, 2 * piece));
}

void errors(size_t piece) {
  CUmemAllocationProp wanted = properties();
  CUmemGenericAllocationHandle memory;
  CUdeviceptr begin = 0;
  INVALID(cuMemCreate(&memory, piece / 2, &wanted, 0));
  INVALID(cuMemCreate(&memory, 0, &wanted, 0));
  INVALID(cuMemAddressReserve(&begin, piece + 1, 0, 0, 0));
  INVALID(cuMemAddressReserve(&begin, piece, 3, 0, 0));
  wanted.location.id = 1000;
  INVALID(cuMemCreate(&memory, piece, &wanted, 0));
  wanted = properties();
  wanted.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
  DRIVER(cuMemCreate(&memory, piece, &wanted, 0));
  int descriptor = -1;
  INVALID(cuMemExportToShareableHandle(&descriptor, memory,
                                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  INVALID(
      cuMemImportFromShareableHandle(&memory, nullptr, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  DRIVER(cuMemAddressReserve(&begin, 2 * piece, 0, 0, 0));
  INVALID(cuMemMap(begin + piece, 2 * piece, 0, memory, 0));  // out of the range, and too much
  INVALID(cuMemMap(begin + 4096, piece, 0, memory, 0));
  INVALID(cuMemMap(begin, piece, piece, memory, 0));
  INVALID(cuMemMap(begin, piece, 0, memory + 1000, 0));
  DRIVER(cuMemMap(begin, piece, 0, memory, 0));
  INVALID(cuMemMap(begin, piece, 0, memory, 0));  // something is mapped there
  CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  INVALID(cuMemSetAccess(begin, 2 * piece, &access, 1));
  int value = 0;
  CHECK(cudaMemcpy(&value, pointer(begin), sizeof value, cudaMemcpyDeviceToHost) != cudaSuccess);
  cudaGetLastError();
  DRIVER(cuMemUnmap(begin, piece));
  DRIVER(cuMemRelease(memory));
  DRIVER(cuMemAddressFree(begin, 2 * piece));
}

int main() {
  int has = 0;
  DRIVER(cuDeviceGetAttribute(&has, CU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED, 0));
  CHECK(has == 1);
  CUDA(cudaFree(nullptr));
  size_t piece = 0;
  const CUmemAllocationProp wanted = properties();
  DRIVER(cuMemGetAllocationGranularity(&piece, &wanted, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  CHECK(piece >= 4096 && (piece & (piece - 1)) == 0);
  grows(piece);
  aliases(piece);
  errors(piece);
  return ok();
}
