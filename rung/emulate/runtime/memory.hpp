// SPDX-License-Identifier: Apache-2.0
// Every allocation that the program got from the runtime, whatever its kind: all of it is memory of
// this machine, but what a GPU would refuse to do with it is refused.
#pragma once

#include <cstddef>

#include "rung/emulate/runtime/api.hpp"

namespace rung::cuda {

struct Allocation {
  char* begin = nullptr;
  std::size_t bytes = 0;
  cudaMemoryType type = cudaMemoryTypeUnregistered;
  bool registered = false;  // the program's own, by cudaHostRegister
  unsigned flags = 0;
};

/// `code`: behind the program's call of the function that allocates, which is who calls this.
/// cudaErrorMemoryAllocation where the simulated device, or this machine, has no room.
cudaError_t allocate(void** memory, std::size_t bytes, cudaMemoryType type, const char* name,
                     unsigned flags = 0, const void* code = __builtin_return_address(0));
cudaError_t release(void* memory, bool host);
/// The allocation that holds this address; `begin` is null when none does.
Allocation find(const void* address);
void free_everything();
std::size_t bytes_in_use();

/// Checks a copy's ends as far as they are known, and copies. Either may be any host memory.
cudaError_t copy_bytes(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind);
/// The same of `height` rows, `depth` times.
struct Rows {
  char* to;
  const char* from;
  std::size_t width, height, depth;
  std::size_t to_pitch, from_pitch, to_slice, from_slice;
};
cudaError_t copy_rows(const Rows& rows, cudaMemcpyKind kind);
cudaError_t fill_bytes(void* to, int value, std::size_t bytes);

}  // namespace rung::cuda
