// SPDX-License-Identifier: Apache-2.0
// Basic blocks that only test something: a part of a condition. Internal to simt/.
#pragma once

#include <cstdint>

namespace rung::simt::record {

/// Returns whether the code behind a basic block's hook only compares, and jumps or goes on: a test
/// of `a && b && c`, but the first. A GPU's compiler makes one branch of such a condition; g++
/// makes one of each test where it instruments blocks. False where the code does not show it.
bool is_part_of_condition(std::uintptr_t site);

}  // namespace rung::simt::record
