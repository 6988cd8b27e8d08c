// SPDX-License-Identifier: Apache-2.0
// Callback for accesses by instrumented host code, for launchers that observe them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "rung/core/export.hpp"

namespace rung::simt::record {

enum class HostAccess : std::uint8_t { read, write, atomic };

/// Callback for host accesses in the `bytes` bytes from `begin`; bytes 0: disabled.
struct HostWatch {
  std::atomic<std::uintptr_t> begin{0};
  std::atomic<std::size_t> bytes{0};
  std::atomic<void (*)(std::uintptr_t address, std::size_t bytes, HostAccess access,
                       const void* behind)>
      accessed{nullptr};
};
extern RUNG_API constinit HostWatch host_watch;

/// Reports an access by host code, or by a kernel that is not recorded. `behind`: return address of
/// the access's hook.
inline void watch_host(std::uintptr_t address, std::size_t bytes, HostAccess access,
                       const void* behind) {
  constexpr auto relaxed = std::memory_order_relaxed;
  if (address - host_watch.begin.load(relaxed) >= host_watch.bytes.load(relaxed)) return;
  if (const auto accessed = host_watch.accessed.load(relaxed); accessed != nullptr) {
    accessed(address, bytes, access, behind);
  }
}

}  // namespace rung::simt::record
