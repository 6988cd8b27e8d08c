// SPDX-License-Identifier: Apache-2.0
// From a site to its line in the source. Internal to simt/.
#pragma once

#include <cstdint>

#include "rung/simt/record.hpp"

namespace rung::simt::record {

/// Where memory was allocated.
Source source_of(const Memory& memory);

/// The line of a kernel that accesses there, through whatever inlined accessors. Remembered.
const Source& source_of(std::uintptr_t site);
/// Returns whether a statement of the source begins with code from here to before `end`. False
/// without debug information.
bool begins_statement(std::uintptr_t begin, std::uintptr_t end);

}  // namespace rung::simt::record
