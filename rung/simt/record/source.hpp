// SPDX-License-Identifier: Apache-2.0
// Maps a site to its source line. Internal to simt/.
#pragma once

#include <cstdint>

#include "rung/simt/record.hpp"

namespace rung::simt::record {

/// Returns the source location at which memory was allocated.
Source source_of(const Memory& memory);

/// Returns the kernel's source line of a site, skipping inlined accessors. Cached.
const Source& source_of(std::uintptr_t site);
/// Returns true if a source statement begins in [begin, end); false without debug information.
bool begins_statement(std::uintptr_t begin, std::uintptr_t end);

}  // namespace rung::simt::record
