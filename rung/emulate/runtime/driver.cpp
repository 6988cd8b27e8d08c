// SPDX-License-Identifier: Apache-2.0
// Driver API functions without a runtime API equivalent.
#include "rung/emulate/runtime/memory.hpp"

#pragma GCC visibility push(default)
#include "cuda.h"
#pragma GCC visibility pop

CUresult cuMemGetAddressRange(CUdeviceptr* begin, std::size_t* bytes, CUdeviceptr address) {
  const rung::cuda::Allocation one = rung::cuda::find(rung::cuda::pointer(address));
  if (one.begin == nullptr) return CUDA_ERROR_NOT_FOUND;
  if (begin != nullptr) *begin = reinterpret_cast<CUdeviceptr>(one.begin);
  if (bytes != nullptr) *bytes = one.bytes;
  return CUDA_SUCCESS;
}
