// SPDX-License-Identifier: Apache-2.0
// The simulated device's memory, and its registration with core. Its memory is host memory, so that
// tensors of the two are interchangeable; what a kernel's own device would refuse is refused here.
#include "rung/core/context.hpp"

#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <new>

#include "rung/simt/limits.hpp"
#include "rung/simt/simulator.hpp"

namespace rung::simt {
namespace {

constexpr std::align_val_t allocation_alignment{256};  // as cudaMalloc's

/// Live allocations by their first byte.
struct Allocations {
  std::mutex mutex;
  std::map<const std::byte*, std::size_t, std::less<>> sizes;
};
Allocations& allocations() {
  static Allocations& table = *new Allocations;  // never destroyed: tensors may be static
  return table;
}

std::size_t host_memory() {
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

void* allocate(int, std::size_t bytes) {
  // Filling it with poison touches every page, so more than there is must be refused first.
  void* memory = bytes < host_memory()
                     ? ::operator new(bytes == 0 ? 1 : bytes, allocation_alignment, std::nothrow)
                     : nullptr;
  if (memory == nullptr) {
    throw Error(ErrorCode::out_of_memory, "simulated GPU: no memory for " + std::to_string(bytes) +
                                              " bytes, the machine has " +
                                              std::to_string(host_memory()));
  }
  std::memset(memory, poison, bytes);
  Allocations& live = allocations();
  const std::lock_guard lock(live.mutex);
  live.sizes[static_cast<const std::byte*>(memory)] = bytes;
  return memory;
}

void release(int, void* memory) noexcept {
  if (memory == nullptr) return;
  Allocations& live = allocations();
  {
    const std::lock_guard lock(live.mutex);
    live.sizes.erase(static_cast<const std::byte*>(memory));
  }
  ::operator delete(memory, allocation_alignment);
}

/// Asked for when a context is made, which is where a RUNG_SIMT_ORDER that nobody understands is to
/// be told, rather than at each launch.
DeviceInfo info(int) {
  (void)thread_order();
  return {.name = "simulated H200",
          .compute_capability = compute_capability,
          .multiprocessors = multiprocessors,
          .shared_per_block = shared_bytes_per_block,
          .shared_per_multiprocessor = shared_bytes_per_multiprocessor,
          .l2_bytes = l2_bytes,
          .memory_bytes = host_memory()};
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
          if (bytes != 0) std::memmove(to, from, bytes);
        },
    .create_stream = [](int) -> void* { return nullptr; },
    .destroy_stream = [](int, void*) noexcept {},
    .synchronize = [](int, void*) {},
}};

}  // namespace

Allocation find_allocation(const void* address) {
  Allocations& live = allocations();
  const std::lock_guard lock(live.mutex);
  const auto* byte = static_cast<const std::byte*>(address);
  auto after = live.sizes.upper_bound(byte);
  if (after == live.sizes.begin()) return {};
  const auto& [begin, size] = *--after;
  if (byte >= begin + size) return {};
  return {const_cast<std::byte*>(begin), size};
}

}  // namespace rung::simt
