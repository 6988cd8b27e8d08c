// SPDX-License-Identifier: Apache-2.0
// transfer: copies within host memory by all cores. One core moves 5 to 10 GB/s between a program's
// memory and page-locked memory, a sixth of the bandwidth of the link to a GPU.
#pragma once

#include <cstdint>
#include <span>

namespace rung {

struct HostCopy {
  void* to;
  const void* from;
  std::int64_t bytes;
  /// Non-temporal stores, for results too large for the caches: they avoid the write-allocate read.
  bool streaming = false;
};

/// Performs all copies with up to `threads` threads; fewer for small copies.
void copy_on_host(std::span<const HostCopy> copies, int threads);

}  // namespace rung
