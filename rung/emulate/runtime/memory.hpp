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
#include "rung/simt/record/footprint.hpp"

namespace rung::cuda {

/// The origin of the bytes, which says who may give them back.
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
  int block = -1;                     // descriptor of the block that backs it
  Pages pages{};                      // pages that hold it, where they are the runtime's
  std::uint64_t launches_before = 0;  // launches before it was allocated
};

/// Allocates memory. `code`: the return address of the program's call of the function that
/// allocates. Returns cudaErrorMemoryAllocation where the simulated device, or this machine, has no
/// room. release() has the same arguments.
cudaError_t allocate(void** memory, std::size_t bytes, cudaMemoryType type, const char* name,
                     unsigned flags = 0, const void* code = __builtin_return_address(0));
cudaError_t release(void* memory, bool host, const void* code);
/// Allocates memory from a pool.
cudaError_t allocate_in_pool(void** memory, std::size_t bytes, const char* name, cudaMemPool_t pool,
                             const void* code = __builtin_return_address(0));
/// Frees memory for cudaFree by the host: memory that a graph owns, that another process has
/// exported to a pool, or that was allocated here. Reports an address that is none of these.
/// `code`: the return address of the program's call.
cudaError_t free_on_device(void* memory, const void* code);
/// Returns the allocation that holds this address; `begin` is null where none does.
Allocation find(const void* address);
/// Returns whether live memory, possibly several adjacent mappings, holds all of these bytes, and
/// some device may write or read there.
bool holds(const void* address, std::size_t bytes, bool writes);

/// Returns the memory that both the host and kernels may access, managed and of the host.
simt::record::ByteRanges host_visible_memory();

/// Registers memory that is no allocation of ours, so that copies and kernels may use it. The masks
/// are those of record::Memory.
struct Access {
  std::uint64_t readers = ~std::uint64_t{0}, writers = ~std::uint64_t{0};
};
void add_region(const Allocation& one, const char* name, bool initialized, Access access,
                const void* code);
void remove_region(char* begin);
/// Turns an allocation of pages into a block that other processes may open; -1 where that is
/// impossible.
int share(const void* memory);
/// Counts bytes as the device's; returns false where it has no room for them.
bool take_room(int device, std::size_t bytes);
void return_room(int device, std::size_t bytes);
/// Applies a change of the access to the device's memory.
void renew_access(int device);
/// Maps another process's memory of this name, into this pool where one is given.
cudaError_t open_memory(void** memory, const BlockName& name, cudaMemPool_t pool, const char* what,
                        const void* code);
/// Unmaps memory of another process, which keeps it.
void close_opened(const Allocation& one);
/// Frees all that was allocated on a device.
void free_everything(int device);
std::size_t bytes_in_use();
/// Reports a copy to the host of memory that nobody has written. In report.cpp.
void report_unwritten_copy(const Allocation& memory, std::size_t bytes, const void* code);
/// Notes a copy to the host of a part of an array, as a size in elements would make it. In
/// report.cpp.
void note_short_copy(const Allocation& memory, std::size_t bytes, const void* code);
/// Reports that host code has accessed device memory, in this line ("file:line"). In report.cpp.
void report_host_access(const Allocation& memory, const char* address, bool writes,
                        const std::string& line);

/// Counts a launch.
void count_launch();
std::uint64_t launches_so_far();

/// Checks a copy's ends as far as they are known, and copies. Either may be any host memory.
/// `code`: the return address of the program's call, if known.
cudaError_t copy_bytes(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                       const void* code = nullptr);
/// Copies `height` rows, `depth` times, with the same checks.
struct Rows {
  char* to;
  const char* from;
  std::size_t width, height, depth;
  std::size_t to_pitch, from_pitch, to_slice, from_slice;
};
cudaError_t copy_rows(const Rows& rows, cudaMemcpyKind kind);
cudaError_t fill_bytes(void* to, int value, std::size_t bytes);

}  // namespace rung::cuda
