// SPDX-License-Identifier: Apache-2.0
// Every allocation that the program got from the runtime, whatever its kind: all of it is memory of
// this machine, but what a GPU would refuse to do with it is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "rung/emulate/runtime/api.hpp"
#include "rung/emulate/runtime/pages.hpp"
#include "rung/emulate/runtime/shared_block.hpp"

namespace rung::cuda {

/// Where the bytes come from, and so who may give them back.
enum class Origin : unsigned char {
  guarded,     // pages of its own, with a margin before and behind
  pages,       // likewise from a page's begin, and may become a block that other processes share
  registered,  // the program's own, by cudaHostRegister
  mapped,      // by cuMemMap
  opened       // another process's
};

struct Allocation {
  char* begin = nullptr;
  std::size_t bytes = 0;
  cudaMemoryType type = cudaMemoryTypeUnregistered;
  Origin origin = Origin::guarded;
  unsigned flags = 0;
  int device = 0;
  cudaMemPool_t pool = nullptr;
  int block = -1;                     // the descriptor of the block that it has become, or is of
  Pages pages{};                      // that hold it, where they are the runtime's
  std::uint64_t launches_before = 0;  // it was allocated
};

/// `code`: behind the program's call of the function that allocates, which is who calls this.
/// cudaErrorMemoryAllocation where the simulated device, or this machine, has no room. Likewise of
/// release().
cudaError_t allocate(void** memory, std::size_t bytes, cudaMemoryType type, const char* name,
                     unsigned flags = 0, const void* code = __builtin_return_address(0));
cudaError_t release(void* memory, bool host, const void* code);
/// The same of a pool.
cudaError_t allocate_in_pool(void** memory, std::size_t bytes, const char* name, cudaMemPool_t pool,
                             const void* code = __builtin_return_address(0));
/// cudaFree by the host: of what a graph owns, what another process has exported to a pool, and
/// what was allocated here. `code`: behind the program's call; told where it is nothing of these.
cudaError_t free_on_device(void* memory, const void* code);
/// The allocation that holds this address; `begin` is null when none does.
Allocation find(const void* address);
/// Whether live memory, be it several adjacent mappings, holds all of these bytes, and some
/// device may write there, or read.
bool holds(const void* address, std::size_t bytes, bool writes);

/// Memory that is no allocation of ours: from now on copies and kernels may use it. The masks are
/// those of record::Memory.
struct Access {
  std::uint64_t readers = ~std::uint64_t{0}, writers = ~std::uint64_t{0};
};
void add_region(const Allocation& one, const char* name, bool initialized, Access access,
                const void* code);
void remove_region(char* begin);
/// Turns an allocation of pages into a block that other processes may open; -1: it cannot be.
int share(const void* memory);
/// Counts bytes as the device's; false: it has no room for them.
bool take_room(int device, std::size_t bytes);
void return_room(int device, std::size_t bytes);
/// Who may access the device's memory has changed.
void renew_access(int device);
/// Another process's memory, by this name; of this pool, null: of none.
cudaError_t open_memory(void** memory, const BlockName& name, cudaMemPool_t pool, const char* what,
                        const void* code);
/// Which the other process keeps.
void close_opened(const Allocation& one);
/// What was allocated on a device.
void free_everything(int device);
std::size_t bytes_in_use();
/// What is copied to the host nobody has written. In report.cpp.
void report_unwritten_copy(const Allocation& memory, std::size_t bytes, const void* code);
/// A copy to the host of a part of an array that a size in elements would make. In report.cpp.
void note_short_copy(const Allocation& memory, std::size_t bytes, const void* code);
/// Host code has accessed device memory, in this line ("file:line"). In report.cpp.
void report_host_access(const Allocation& memory, const char* address, bool writes,
                        const std::string& line);

/// A kernel runs.
void count_launch();
std::uint64_t launches_so_far();

/// Checks a copy's ends as far as they are known, and copies. Either may be any host memory.
/// `code`: behind the program's call, if known.
cudaError_t copy_bytes(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                       const void* code = nullptr);
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
