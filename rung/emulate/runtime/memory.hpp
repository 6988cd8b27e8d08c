// SPDX-License-Identifier: Apache-2.0
// All allocations that the program has received from the runtime. They are host memory, but
// accesses that a GPU would reject are rejected.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "rung/emulate/runtime/api.hpp"
#include "rung/emulate/runtime/pages.hpp"
#include "rung/emulate/runtime/shared_block.hpp"
#include "rung/simt/record/footprint.hpp"

namespace rung::cuda {

/// Origin of an allocation, which determines how it is released.
enum class Origin : unsigned char {
  guarded,     // pages of its own, with guard pages before and behind
  pages,       // page-aligned guarded pages, which may become a block shared with other processes
  registered,  // the program's own memory, registered by cudaHostRegister
  mapped,      // by cuMemMap
  opened       // of another process
};

struct Allocation {
  char* begin = nullptr;
  std::size_t bytes = 0;
  cudaMemoryType type = cudaMemoryTypeUnregistered;
  Origin origin = Origin::guarded;
  unsigned flags = 0;
  int device = 0;
  cudaMemPool_t pool = nullptr;
  int block = -1;                     // descriptor of the backing block
  Pages pages{};                      // pages of the runtime that contain it
  std::uint64_t launches_before = 0;  // number of launches before the allocation
};

/// Allocates memory. Returns cudaErrorMemoryAllocation if the simulated device or this machine is
/// out of memory. `code`: return address of the program's call. release() has the same parameters.
cudaError_t allocate(void** memory, std::size_t bytes, cudaMemoryType type, const char* name,
                     unsigned flags = 0, const void* code = __builtin_return_address(0));
cudaError_t release(void* memory, bool host, const void* code);
/// Allocates memory from a pool.
cudaError_t allocate_in_pool(void** memory, std::size_t bytes, const char* name, cudaMemPool_t pool,
                             const void* code = __builtin_return_address(0));
/// Implements cudaFree in host code, for memory allocated here, by a graph, or in another process's
/// exported pool. Reports any other address. `code`: return address of the program's call.
cudaError_t free_on_device(void* memory, const void* code);
/// Returns the allocation that contains this address; its `begin` is null if there is none.
Allocation find(const void* address);
/// Returns true if live memory that some device may access, possibly several adjacent mappings,
/// contains all of these bytes.
bool holds(const void* address, std::size_t bytes, bool writes);

/// Returns the memory that host and kernels may both access: managed and host memory.
simt::record::ByteRanges host_visible_memory();

/// Devices that may access memory that the runtime has not allocated. Masks as in
/// record::Memory.
struct Access {
  std::uint64_t readers = ~std::uint64_t{0}, writers = ~std::uint64_t{0};
};
void add_region(const Allocation& one, const char* name, bool initialized, Access access,
                const void* code);
void remove_region(char* begin);
/// Converts an allocation of pages to a block that other processes may open. Returns its
/// descriptor; -1 on failure.
int share(const void* memory);
/// Adds bytes to the device's usage; returns false if it is out of memory.
bool take_room(int device, std::size_t bytes);
void return_room(int device, std::size_t bytes);
/// Updates access rights to the device's memory after a change of peer access.
void renew_access(int device);
/// Maps another process's memory with this name, in this pool unless it is null.
cudaError_t open_memory(void** memory, const BlockName& name, cudaMemPool_t pool, const char* what,
                        const void* code);
/// Unmaps memory of another process, in which it stays allocated.
void close_opened(const Allocation& one);
/// Frees all memory of a device.
void free_everything(int device);
std::size_t bytes_in_use();
/// Reports a copy of uninitialized memory to the host; in report.cpp.
void report_unwritten_copy(const Allocation& memory, std::size_t bytes, const void* code);
/// Notes a copy to the host of a part of an array, as by a size in elements; in report.cpp.
void note_short_copy(const Allocation& memory, std::size_t bytes, const void* code);
/// Reports an access of host code at "file:line" to device memory; in report.cpp.
void report_host_access(const Allocation& memory, const char* address, bool writes,
                        const std::string& line);

/// Counts a launch.
void count_launch();
std::uint64_t launches_so_far();

/// Copies after validating both ends as far as they are known; either may be any host memory.
/// `code`: return address of the program's call; null if unknown.
cudaError_t copy_bytes(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                       const void* code = nullptr);
/// Copies `height` rows `depth` times, with the same validation.
struct Rows {
  char* to;
  const char* from;
  std::size_t width, height, depth;
  std::size_t to_pitch, from_pitch, to_slice, from_slice;
};
cudaError_t copy_rows(const Rows& rows, cudaMemcpyKind kind);
cudaError_t fill_bytes(void* to, int value, std::size_t bytes);

}  // namespace rung::cuda
