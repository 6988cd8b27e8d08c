// SPDX-License-Identifier: Apache-2.0
// Accesses of host code that was compiled with hooks, for launchers that want to know of them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "rung/core/export.hpp"

namespace rung::simt::record {

enum class HostAccess : std::uint8_t { read, write, atomic };

/// Calls `accessed` for host accesses from `begin` on; bytes 0: for none.
struct HostWatch {
  std::atomic<std::uintptr_t> begin{0};
  std::atomic<std::size_t> bytes{0};
  std::atomic<void (*)(std::uintptr_t address, std::size_t bytes, HostAccess access,
                       const void* behind)>
      accessed{nullptr};
};
extern RUNG_API constinit HostWatch host_watch;

/// Tells of an access by host code, or by a kernel that is not recorded. `behind`: the code behind
/// it.
inline void watch_host(std::uintptr_t address, std::size_t bytes, HostAccess access,
                       const void* behind) {
  constexpr auto relaxed = std::memory_order_relaxed;
  if (address - host_watch.begin.load(relaxed) >= host_watch.bytes.load(relaxed)) return;
  if (const auto accessed = host_watch.accessed.load(relaxed); accessed != nullptr) {
    accessed(address, bytes, access, behind);
  }
}

}  // namespace rung::simt::record
