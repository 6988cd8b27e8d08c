// SPDX-License-Identifier: Apache-2.0
// Virtual memory management: address ranges, physical memory, and mappings between them.
#pragma once

#include <unistd.h>

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "rung/emulate/runtime/memory.hpp"

#pragma GCC visibility push(default)
#include "cuda.h"
#pragma GCC visibility pop

namespace rung::cuda {

/// Granularity of sizes and addresses, in bytes.
inline constexpr std::size_t granularity = std::size_t{2} << 20;

/// Physical memory. Alive as long as a handle or a mapping refers to it.
struct Physical {
  int block = -1;
  std::size_t bytes = 0;
  CUmemAllocationProp properties{};
  bool imported = false;
  // True if it is or was mapped at another address or by another process, so that its writers are
  // unknown.
  bool known_elsewhere = false;
  bool mapped_before = false;

  /// Sets known_elsewhere, and marks the memory of all its mappings as initialized.
  void tell();

  Physical() = default;
  Physical(const Physical&) = delete;
  Physical& operator=(const Physical&) = delete;
  ~Physical() {
    close(block);
    if (!imported) return_room(properties.location.id, bytes);
  }
};

struct Mapping {
  std::size_t bytes = 0;
  std::shared_ptr<Physical> memory;
  Access access{0, 0};
};

struct Space {
  std::mutex mutex;
  std::map<char*, std::size_t> reserved;
  std::map<char*, Mapping> mapped;
  std::map<CUmemGenericAllocationHandle, std::shared_ptr<Physical>> handles;
  CUmemGenericAllocationHandle last_handle = 0x1000;

  CUmemGenericAllocationHandle name(std::shared_ptr<Physical> memory) {
    handles[++last_handle] = std::move(memory);
    return last_handle;
  }
  std::shared_ptr<Physical> find(CUmemGenericAllocationHandle handle) {
    const auto at = handles.find(handle);
    return at != handles.end() ? at->second : nullptr;
  }
};
Space& space();

}  // namespace rung::cuda
