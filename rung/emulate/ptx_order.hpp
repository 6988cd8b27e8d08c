// SPDX-License-Identifier: Apache-2.0
// Translates memory order and scope of PTX instructions to the simulator's.
#pragma once

#include <string>

#include "rung/emulate/ptx.hpp"

namespace rung::emulate {

/// Returns location, order and scope of a strong load or store as call arguments; "" for a weak
/// one.
std::string strong_access(const Instruction& one);
/// Returns location, order and scope of an atomic operation as call arguments.
std::string atomic_order(const Instruction& one);

}  // namespace rung::emulate
