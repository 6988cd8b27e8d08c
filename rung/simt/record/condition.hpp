// SPDX-License-Identifier: Apache-2.0
// Detection of basic blocks that test part of a condition. Internal to simt/.
#pragma once

#include <cstdint>

namespace rung::simt::record {

/// Returns true if the code behind a basic block's hook only compares and then jumps or falls
/// through: a later test of `a && b && c`. A GPU compiler emits one branch for such a condition;
/// g++ with block hooks emits one per test. Returns false for unrecognized code.
bool is_part_of_condition(std::uintptr_t site);

}  // namespace rung::simt::record
