// SPDX-License-Identifier: Apache-2.0
// Allocates and frees the memory of the program, and keeps the access rights of the devices to it.
#include "rung/emulate/runtime/memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "rung/emulate/runtime/devices.hpp"
#include "rung/emulate/runtime/exports.hpp"
#include "rung/emulate/runtime/pools.hpp"
#include "rung/emulate/runtime/shared_block.hpp"
#include "rung/emulate/runtime/stream.hpp"
#include "rung/simt/limits.hpp"
#include "rung/simt/record.hpp"

namespace rung::cuda {
namespace {

namespace record = simt::record;

// Gap between allocations, so that small overruns do not silently access the next allocation.
constexpr std::size_t margin = 512;
/// Maximum number of allocations with guard pages, since the system limits the number of mappings.
constexpr std::size_t max_guarded = 8192;

struct Table {
  std::mutex mutex;
  std::map<const char*, Allocation> live;
  std::size_t bytes[max_devices] = {};  // bytes allocated by the runtime
};
Table& table() {
  static Table& one = *new Table;  // never destroyed, since static destructors may free memory
  return one;
}

std::size_t free_on_this_machine() {
  return static_cast<std::size_t>(sysconf(_SC_AVPHYS_PAGES)) *
         static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

bool take_room_of(int device, std::size_t bytes) {
  cudaDeviceProp properties;
  cudaGetDeviceProperties(&properties, device);
  const std::lock_guard lock(table().mutex);
  std::size_t& used = table().bytes[device];
  if (bytes > properties.totalGlobalMem - std::min(used, properties.totalGlobalMem) ||
      bytes > free_on_this_machine()) {
    return false;
  }
  used += bytes;
  return true;
}
void return_room_of(int device, std::size_t bytes) {
  const std::lock_guard lock(table().mutex);
  table().bytes[device] -= bytes;
}

Access access_to(const Allocation& one) {
  if (one.type != cudaMemoryTypeDevice) return {};
  if (one.pool != nullptr) return access_to_pool(one.pool);
  const std::uint64_t devices = devices_with_access(one.device);
  return {devices, devices};
}

/// Returns the size of an allocation that can be exported to other processes.
std::size_t whole_bytes(std::size_t bytes) { return whole_pages(bytes + margin); }

bool get_bytes(Allocation& one) {
  std::size_t allocations = 0;
  {
    const std::lock_guard lock(table().mutex);
    allocations = table().live.size();
  }
  const std::size_t before = one.origin == Origin::guarded ? margin : 0;
  one.pages = map_pages(before + one.bytes + margin, allocations < max_guarded);
  if (one.pages.begin == nullptr) return false;
  one.begin = one.pages.begin + before;
  one.launches_before = launches_so_far();
  std::memset(one.pages.begin, simt::poison, one.pages.bytes);
  // Fresh managed memory is zero; programs rely on this.
  if (one.type == cudaMemoryTypeManaged) std::memset(one.begin, 0, one.bytes);
  if (one.type == cudaMemoryTypeDevice) close_to_host(one.pages);
  return true;
}
/// Frees the allocation's bytes. `code`: return address of the freeing call.
void delete_bytes(const Allocation& one, const void* code) {
  open_to_host(one.pages);
  retire_pages(one.pages, {one.begin, one.bytes, code});
  if (one.block >= 0) close(one.block);
}

cudaError_t allocate_as(void** memory, Allocation one, const char* name, const void* code) {
  if (memory == nullptr) return cudaErrorInvalidValue;
  *memory = nullptr;
  if (one.bytes == 0) return cudaSuccess;
  if (!take_room_of(one.device, one.bytes)) return cudaErrorMemoryAllocation;
  if (!get_bytes(one)) {
    return_room_of(one.device, one.bytes);
    return cudaErrorMemoryAllocation;
  }
  // Memory that the host may write directly counts as written.
  add_region(one, name, one.type != cudaMemoryTypeDevice, access_to(one), code);
  *memory = one.begin;
  return cudaSuccess;
}

}  // namespace

std::size_t bytes_in_use() {
  const std::lock_guard lock(table().mutex);
  return table().bytes[current_device()];
}
bool take_room(int device, std::size_t bytes) { return take_room_of(device, bytes); }
void return_room(int device, std::size_t bytes) { return_room_of(device, bytes); }

void add_region(const Allocation& one, const char* name, bool initialized, Access access,
                const void* code) {
  {
    const std::lock_guard lock(table().mutex);
    table().live[one.begin] = one;
  }
  if (one.type != cudaMemoryTypeDevice) note_visible_memory(1);
  record::register_memory({.begin = one.begin,
                           .bytes = one.bytes,
                           .initialized = initialized,
                           .freed_by_hand = one.origin != Origin::registered,
                           .name = name,
                           .code = code,
                           .readers = access.readers,
                           .writers = access.writers});
}
void remove_region(char* begin) {
  std::size_t bytes = 0;
  {
    const std::lock_guard lock(table().mutex);
    const auto at = table().live.find(begin);
    if (at == table().live.end()) return;
    if (at->second.type != cudaMemoryTypeDevice) note_visible_memory(-1);
    bytes = at->second.bytes;
    table().live.erase(at);
  }
  forget_bytes(begin, bytes);
  record::unregister_memory(begin);
}

cudaError_t allocate(void** memory, std::size_t bytes, cudaMemoryType type, const char* name,
                     unsigned flags, const void* code) {
  const bool pages = type == cudaMemoryTypeDevice && exports_memory();
  return allocate_as(memory,
                     {.bytes = bytes,
                      .type = type,
                      .origin = pages ? Origin::pages : Origin::guarded,
                      .flags = flags,
                      .device = current_device()},
                     name, code);
}
cudaError_t allocate_in_pool(void** memory, std::size_t bytes, const char* name, cudaMemPool_t pool,
                             const void* code) {
  return allocate_as(memory,
                     {.bytes = bytes,
                      .type = cudaMemoryTypeDevice,
                      .origin = pool_may_export(pool) ? Origin::pages : Origin::guarded,
                      .device = device_of_pool(pool),
                      .pool = pool},
                     name, code);
}

cudaError_t release(void* memory, bool host, const void* code) {
  if (memory == nullptr) return cudaSuccess;
  Allocation found;
  {
    const std::lock_guard lock(table().mutex);
    const auto at = table().live.find(static_cast<char*>(memory));
    if (at != table().live.end()) found = at->second;
    const bool ours = found.origin == Origin::guarded || found.origin == Origin::pages;
    if (found.begin == nullptr || !ours || (found.type == cudaMemoryTypeHost) != host) {
      return cudaErrorInvalidValue;
    }
    table().bytes[found.device] -= found.bytes;
    table().live.erase(at);
  }
  if (found.type != cudaMemoryTypeDevice) note_visible_memory(-1);
  record::unregister_memory(memory, code);
  forget_bytes(found.begin, found.bytes);
  delete_bytes(found, code);
  return cudaSuccess;
}

Allocation find(const void* address) {
  const std::lock_guard lock(table().mutex);
  const auto* byte = static_cast<const char*>(address);
  auto after = table().live.upper_bound(byte);
  if (after == table().live.begin()) return {};
  const Allocation& candidate = (--after)->second;
  return byte < candidate.begin + candidate.bytes ? candidate : Allocation{};
}

record::ByteRanges host_visible_memory() {
  const std::lock_guard lock(table().mutex);
  record::ByteRanges ranges;
  for (const auto& [begin, one] : table().live) {
    const auto address = reinterpret_cast<std::uintptr_t>(begin);
    if (one.type != cudaMemoryTypeDevice) ranges.push_back({address, address + one.bytes});
  }
  return ranges;
}

bool holds(const void* address, std::size_t bytes, bool writes) {
  const char* at = static_cast<const char*>(address);
  for (const char* const end = at + bytes;;) {
    const Allocation one = find(at);
    if (one.begin == nullptr) return false;
    if (one.origin == Origin::mapped) {
      const record::Memory region = record::find_memory(at);
      if ((writes ? region.writers : region.readers) == 0) return false;
    }
    at = one.begin + one.bytes;
    if (at >= end) return true;
    if (one.origin != Origin::mapped) return false;  // only mapped memory is adjacent intentionally
  }
}

int share(const void* memory) {
  const std::lock_guard lock(table().mutex);
  const auto at = table().live.find(static_cast<const char*>(memory));
  if (at == table().live.end() || at->second.origin != Origin::pages) return -1;
  Allocation& one = at->second;
  if (one.block >= 0) return one.block;
  const std::size_t whole = whole_bytes(one.bytes);
  const int block = make_block({.bytes = whole,
                                .requested = one.bytes,
                                .pool = one.pool != nullptr ? number_of_pool(one.pool) : 0,
                                .device = one.device});
  if (block < 0) return -1;
  // The block replaces the pages at the same address; from then on the host may access it.
  open_to_host(one.pages);
  void* copy = map_block(block, whole, PROT_READ | PROT_WRITE);
  if (copy != nullptr) {
    std::memcpy(copy, one.begin, whole);
    munmap(copy, whole);
  }
  if (copy == nullptr || map_block(block, whole, PROT_READ | PROT_WRITE, one.begin) == nullptr) {
    close(block);
    return -1;
  }
  note_other_processes();
  record::mark_initialized(one.begin, one.bytes);  // writes by other processes are not observed
  return one.block = block;
}

void close_opened(const Allocation& one) {
  munmap(one.begin, whole_bytes(one.bytes));
  close(one.block);
}

cudaError_t free_on_device(void* memory, const void* code) {
  if (give_back_to_graph(memory)) return cudaSuccess;
  const Allocation found = find(memory);
  if (found.begin == memory && found.origin == Origin::opened && found.pool != nullptr) {
    remove_region(found.begin);
    close_opened(found);
    return cudaSuccess;
  }
  const cudaError_t error = release(memory, false, code);
  if (error != cudaSuccess && device_failure() == cudaSuccess) {
    report_misuse("use_after_free",
                  "cudaFree of an address that is no allocation: freed before, or never allocated",
                  code);
  }
  return error;
}

void renew_access(int device) {
  const std::lock_guard lock(table().mutex);
  for (const auto& [begin, one] : table().live) {
    const bool own =
        one.origin != Origin::mapped && (one.origin != Origin::opened || one.pool != nullptr);
    if (one.device != device || one.type != cudaMemoryTypeDevice || !own) continue;
    const Access access = access_to(one);
    record::allow_devices(begin, access.readers, access.writers);
  }
}

void free_everything(int device) {
  std::vector<Allocation> gone;
  {
    const std::lock_guard lock(table().mutex);
    for (auto at = table().live.begin(); at != table().live.end();) {
      const Allocation& one = at->second;
      const bool stays = one.device != device || one.origin == Origin::mapped;
      if (!stays) gone.push_back(one);
      at = stays ? std::next(at) : table().live.erase(at);
    }
  }
  for (const Allocation& one : gone) {
    record::unregister_memory(one.begin);
    if (one.type != cudaMemoryTypeDevice) note_visible_memory(-1);
    if (one.origin == Origin::registered) continue;
    if (one.origin == Origin::opened) {
      close_opened(one);
    } else {
      return_room_of(one.device, one.bytes);
      delete_bytes(one, nullptr);
    }
  }
}

}  // namespace rung::cuda
