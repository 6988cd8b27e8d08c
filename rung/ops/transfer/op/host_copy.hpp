// SPDX-License-Identifier: Apache-2.0
// transfer: copies within host memory by all cores. One core moves 5 to 10 GB/s between a program's
// memory and page-locked memory, a sixth of what the link to a GPU carries.
#pragma once

#include <cstdint>
#include <span>

namespace rung {

struct HostCopy {
  void* to;
  const void* from;
  std::int64_t bytes;
  /// Past the caches: for results that are too large to stay there. An ordinary store first reads
  /// the line that it replaces.
  bool streaming = false;
};

/// All of them, with up to `threads` threads; fewer where there is little to copy.
void copy_on_host(std::span<const HostCopy> copies, int threads);

}  // namespace rung
