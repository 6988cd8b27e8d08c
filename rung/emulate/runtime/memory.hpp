// SPDX-License-Identifier: Apache-2.0
// All allocations that the program has received from the runtime. They are in host memory, but
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

/// Origin of an allocation; determines how it is released.
enum class Origin : unsigned char {
  guarded,     // separate pages between guard pages
  pages,       // the same, page-aligned; may be converted to a block shared with other processes
  registered,  // memory of the program, registered by cudaHostRegister
  mapped,      // mapped by cuMemMap
  opened       // memory of another process
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
  Pages pages{};                      // the runtime's pages that contain it
  std::uint64_t launches_before = 0;  // number of launches that preceded the allocation
};

/// Allocates memory. Returns cudaErrorMemoryAllocation if the simulated device or this machine is
/// out of memory. `code`: return address of the program's call. release() has the same parameters.
cudaError_t allocate(void** memory, std::size_t bytes, cudaMemoryType type, const char* name,
                     unsigned flags = 0, const void* code = __builtin_return_address(0));
cudaError_t release(void* memory, bool host, const void* code);
/// Allocates memory from a pool.
cudaError_t allocate_in_pool(void** memory, std::size_t bytes, const char* name, cudaMemPool_t pool,
                             const void* code = __builtin_return_address(0));
/// Implements cudaFree in host code, for memory allocated by this runtime, by a graph, or in
/// another process's exported pool. Reports any other address. `code`: return address of the
/// program's call.
cudaError_t free_on_device(void* memory, const void* code);
/// Returns the allocation that contains this address; its `begin` is null if there is none.
Allocation find(const void* address);
/// Returns true if live memory that some device may access contains all of these bytes, possibly in
/// several adjacent mappings.
bool holds(const void* address, std::size_t bytes, bool writes);

/// Returns the memory that host and kernels may both access: managed memory and host memory.
simt::record::ByteRanges host_visible_memory();

/// Masks of the devices that may access memory not allocated by the runtime, as in record::Memory.
struct Access {
  std::uint64_t readers = ~std::uint64_t{0}, writers = ~std::uint64_t{0};
};
void add_region(const Allocation& one, const char* name, bool initialized, Access access,
                const void* code);
void remove_region(char* begin);
/// Converts an allocation with origin `pages` to a block that other processes may open. Returns its
/// descriptor; -1 on failure.
int share(const void* memory);
/// Adds bytes to the device's usage. Returns false if the device is out of memory.
bool take_room(int device, std::size_t bytes);
void return_room(int device, std::size_t bytes);
/// Updates the access rights to the device's memory after a change of peer access.
void renew_access(int device);
/// Maps memory of another process, identified by `name`; counts it as memory of `pool` unless that
/// is null.
cudaError_t open_memory(void** memory, const BlockName& name, cudaMemPool_t pool, const char* what,
                        const void* code);
/// Unmaps another process's memory, which remains allocated in that process.
void close_opened(const Allocation& one);
/// Frees all memory of a device.
void free_everything(int device);
std::size_t bytes_in_use();
/// Reports a copy of uninitialized memory to the host; in report.cpp.
void report_unwritten_copy(const Allocation& memory, std::size_t bytes, const void* code);
/// Records a copy of part of an array to the host, whose size may count elements instead of bytes;
/// in report.cpp.
void note_short_copy(const Allocation& memory, std::size_t bytes, const void* code);
/// Reports that host code at "file:line" accesses device memory; in report.cpp.
void report_host_access(const Allocation& memory, const char* address, bool writes,
                        const std::string& line);

/// Increments the number of launches.
void count_launch();
std::uint64_t launches_so_far();

/// Copies after validating source and destination as far as they are known; each may be any host
/// memory. `code`: return address of the program's call; null if unknown.
cudaError_t copy_bytes(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                       const void* code = nullptr);
/// A copy of `height` rows, repeated `depth` times, with the same validation.
struct Rows {
  char* to;
  const char* from;
  std::size_t width, height, depth;
  std::size_t to_pitch, from_pitch, to_slice, from_slice;
};
cudaError_t copy_rows(const Rows& rows, cudaMemcpyKind kind);
cudaError_t fill_bytes(void* to, int value, std::size_t bytes);

}  // namespace rung::cuda
