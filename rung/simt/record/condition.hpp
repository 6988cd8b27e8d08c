// SPDX-License-Identifier: Apache-2.0
// Basic blocks that only test part of a condition. Internal to simt/.
#pragma once

#include <cstdint>

namespace rung::simt::record {

/// Returns true if the code behind a basic block's hook only compares and then jumps or falls
/// through: a test of `a && b && c` other than the first. A GPU compiler emits one branch for such
/// a condition; g++ with block hooks emits one per test. Returns false if the code is not
/// recognized.
bool is_part_of_condition(std::uintptr_t site);

}  // namespace rung::simt::record
