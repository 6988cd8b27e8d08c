// SPDX-License-Identifier: Apache-2.0
// The simulated device's memory, and its registration with core. Its memory is host memory, so that
// tensors of the two are interchangeable; what a kernel's own device would refuse is refused here.
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

constexpr std::align_val_t allocation_alignment{256};  // as cudaMalloc's

/// Memory before and behind an allocation that belongs to nobody: what goes astray by a little
/// damages nothing, and is found while somebody records.
constexpr std::size_t margin = 256;

/// What was freed while somebody records, kept so that nothing else comes to be there: up to so
/// many bytes.
constexpr std::size_t max_kept = std::size_t{256} << 20;
struct Kept {
  std::mutex mutex;
  std::deque<std::pair<std::byte*, std::size_t>> memory;
  std::size_t bytes = 0;
};
Kept& kept() {
  static Kept& one = *new Kept;  // never destroyed: tensors may be static
  return one;
}

std::size_t host_memory() {
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

void* allocate(int, std::size_t bytes) {
  // Filling it with poison touches every page, so more than there is must be refused first.
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
  // Host code writes tensors through pointers: that nobody has written them cannot be known.
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

/// Asked for when a context is made, which is where a RUNG_SIMT_ORDER that nobody understands is to
/// be reported, rather than at each launch.
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
    // Kernels are done when their launch returns: copies need not wait, streams are nothing.
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
