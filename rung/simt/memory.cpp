// SPDX-License-Identifier: Apache-2.0
// Memory of the simulated device, and its registration with core. It is host memory, so host and
// device tensors are interchangeable; accesses that a real device would reject are rejected.
#include "rung/core/context.hpp"

#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <mutex>
#include <new>
#include <utility>

#include "rung/core/workspace.hpp"
#include "rung/simt/limits.hpp"
#include "rung/simt/record.hpp"
#include "rung/simt/simulator.hpp"

namespace rung::simt {
namespace {

constexpr std::align_val_t allocation_alignment{256};  // as in cudaMalloc

/// Bytes of red zone on each side of an allocation: small overruns corrupt nothing, and a recording
/// session detects them.
constexpr std::size_t margin = 256;

constexpr std::align_val_t workspace_alignment{4096};  // as Context::workspace() promises
/// Bytes of red zone on each side of a workspace; a multiple of its alignment.
constexpr std::size_t workspace_margin = 4096;

/// Maximum bytes of freed memory in quarantine: while a session records, freed addresses are not
/// reused.
constexpr std::size_t max_kept = std::size_t{256} << 20;
struct KeptMemory {
  std::byte* begin;  // red zones included
  std::size_t bytes;
  std::align_val_t alignment;
};
struct Kept {
  std::mutex mutex;
  std::deque<KeptMemory> memory;
  std::size_t bytes = 0;
};
Kept& kept() {
  static Kept& one = *new Kept;  // never destroyed, since tensors may be static
  return one;
}

std::size_t host_memory() {
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

/// Allocates `bytes` bytes between two red zones of `red_zone` bytes, all filled with poison.
std::byte* allocate_poisoned(std::size_t bytes, std::size_t red_zone, std::align_val_t alignment) {
  // Poisoning touches every page, so sizes beyond the host's memory are rejected first.
  const std::size_t whole = bytes + 2 * red_zone;
  void* memory = bytes < host_memory() ? ::operator new(whole, alignment, std::nothrow) : nullptr;
  if (memory == nullptr) {
    throw Error(ErrorCode::out_of_memory, "simulated GPU: no memory for " + std::to_string(bytes) +
                                              " bytes, the machine has " +
                                              std::to_string(host_memory()));
  }
  std::memset(memory, poison, whole);
  return static_cast<std::byte*>(memory) + red_zone;
}

/// Deletes the memory. While a session records, puts it in quarantine first.
void retire(const KeptMemory& memory) noexcept {
  Kept& old = kept();
  const std::lock_guard lock(old.mutex);
  const std::size_t most = record::checking() ? max_kept : 0;
  old.memory.push_back(memory);
  old.bytes += memory.bytes;
  while (old.bytes > most || (most == 0 && !old.memory.empty())) {
    old.bytes -= old.memory.front().bytes;
    ::operator delete(old.memory.front().begin, old.memory.front().alignment);
    old.memory.pop_front();
  }
}

void* allocate(int, std::size_t bytes) {
  std::byte* const memory = allocate_poisoned(bytes, margin, allocation_alignment);
  // All bytes count as initialized: host code writes tensors through pointers, unobserved.
  record::register_memory({.begin = memory, .bytes = bytes, .name = "device memory"});
  return memory;
}

void release(int, void* memory) noexcept {
  if (memory == nullptr) return;
  const std::size_t bytes = record::find_memory(memory).bytes;
  record::unregister_memory(memory);
  retire({static_cast<std::byte*>(memory) - margin, bytes + 2 * margin, allocation_alignment});
}

/// Allocates a workspace. Only kernels use it, so that reads of bytes that none has written are
/// findings.
void* allocate_workspace(std::size_t bytes) {
  std::byte* const memory = allocate_poisoned(bytes, workspace_margin, workspace_alignment);
  record::register_memory({.begin = memory - workspace_margin,
                           .bytes = bytes + 2 * workspace_margin,
                           .initialized = false,
                           .name = "the workspace",
                           .guard_before = workspace_margin,
                           .guard_behind = workspace_margin});
  return memory;
}

void release_workspace(void* memory) noexcept {
  std::byte* const begin = static_cast<std::byte*>(memory) - workspace_margin;
  const std::size_t whole = record::find_memory(begin).bytes;
  record::unregister_memory(begin);
  retire({begin, whole, workspace_alignment});
}

constexpr detail::WorkspaceAllocator workspaces{allocate_workspace, release_workspace};
const struct WorkspaceRegistration {
  WorkspaceRegistration() noexcept { detail::set_simulated_workspaces(workspaces); }
} workspace_registration;

/// Describes the device. Called when a context is created, so that an invalid RUNG_SIMT_ORDER is
/// reported at that time instead of at each launch.
DeviceInfo info(int) {
  (void)thread_order();
  return {.name = "simulated H200",
          .compute_capability = compute_capability,
          .sms = multiprocessors,
          .shared_per_block = shared_bytes_per_block,
          .shared_per_sm = shared_bytes_per_multiprocessor,
          .l2_bytes = l2_bytes,
          .memory_bytes = host_memory(),
          .bytes_per_second = simt::bytes_per_second};
}

const DeviceRegistration self{{
    .backend = Backend::simt,
    .device_count = [] { return 1; },
    .why_not = [] { return ""; },
    .info = info,
    .allocate = allocate,
    .release = release,
    // Launches are synchronous: copies need not wait, and streams have no effect.
    .copy =
        [](int, void* to, const void* from, std::size_t bytes) {
          if (bytes == 0) return;
          std::memmove(to, from, bytes);
          record::copy_initialized(to, from, bytes);
        },
    .create_stream = [](int) -> void* { return nullptr; },
    .destroy_stream = [](int, void*) noexcept {},
    .synchronize = [](int, void*) {},
}};

}  // namespace

Allocation find_allocation(const void* address) {
  const record::Memory memory = record::find_memory(address);
  return {static_cast<std::byte*>(const_cast<void*>(memory.begin)) + memory.guard_before,
          memory.bytes - memory.guard_before - memory.guard_behind};
}

}  // namespace rung::simt
