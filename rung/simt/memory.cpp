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

#include "rung/simt/limits.hpp"
#include "rung/simt/record.hpp"
#include "rung/simt/simulator.hpp"

namespace rung::simt {
namespace {

constexpr std::align_val_t allocation_alignment{256};  // as in cudaMalloc

/// Bytes of red zone on each side of an allocation: small overruns corrupt nothing, and a recording
/// session detects them.
constexpr std::size_t margin = 256;

/// Maximum bytes of freed memory in quarantine: while a session records, freed addresses are not
/// reused.
constexpr std::size_t max_kept = std::size_t{256} << 20;
struct Kept {
  std::mutex mutex;
  std::deque<std::pair<std::byte*, std::size_t>> memory;
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

void* allocate(int, std::size_t bytes) {
  // Poisoning touches every page, so sizes beyond the host's memory are rejected first.
  void* whole = bytes < host_memory()
                    ? ::operator new(bytes + 2 * margin, allocation_alignment, std::nothrow)
                    : nullptr;
  if (whole == nullptr) {
    throw Error(ErrorCode::out_of_memory, "simulated GPU: no memory for " + std::to_string(bytes) +
                                              " bytes, the machine has " +
                                              std::to_string(host_memory()));
  }
  std::memset(whole, poison, bytes + 2 * margin);
  std::byte* memory = static_cast<std::byte*>(whole) + margin;
  // All bytes count as initialized: host code writes tensors through pointers, unobserved.
  record::register_memory({.begin = memory, .bytes = bytes, .name = "device memory"});
  return memory;
}

void release(int, void* memory) noexcept {
  if (memory == nullptr) return;
  const std::size_t bytes = record::find_memory(memory).bytes;
  record::unregister_memory(memory);
  Kept& old = kept();
  const std::lock_guard lock(old.mutex);
  const std::size_t most = record::checking() ? max_kept : 0;
  old.memory.emplace_back(static_cast<std::byte*>(memory) - margin, bytes);
  old.bytes += bytes;
  while (old.bytes > most || (most == 0 && !old.memory.empty())) {
    old.bytes -= old.memory.front().second;
    ::operator delete(old.memory.front().first, allocation_alignment);
    old.memory.pop_front();
  }
}

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
  return {static_cast<std::byte*>(const_cast<void*>(memory.begin)), memory.bytes};
}

}  // namespace rung::simt
