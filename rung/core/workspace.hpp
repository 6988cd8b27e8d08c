// SPDX-License-Identifier: Apache-2.0
// Workspaces of the simulated GPU. Other backends round a workspace up and reuse it for smaller
// requests, so that accesses outside of the requested bytes hit memory of the same allocation. The
// simulated GPU allocates each request separately with exactly the requested size and checks every
// access against it. Internal.
#pragma once

#include <cstddef>

#include "rung/core/export.hpp"

namespace rung::detail {

/// Functions that allocate and release the workspace of a single request.
struct WorkspaceAllocator {
  /// Returns memory aligned to 4096 bytes; throws Error(out_of_memory).
  void* (*allocate)(std::size_t bytes);
  void (*release)(void* memory) noexcept;
};

/// Sets the simulated GPU's allocator; called during static initialization. The functions must
/// remain valid for the lifetime of the process.
RUNG_API void set_simulated_workspaces(const WorkspaceAllocator& allocator) noexcept;

}  // namespace rung::detail
