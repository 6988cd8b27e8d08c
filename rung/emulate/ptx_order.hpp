// SPDX-License-Identifier: Apache-2.0
// Memory order and scope of PTX instructions, in the simulator's terms.
#pragma once

#include <string>

#include "rung/emulate/ptx.hpp"

namespace rung::emulate {

/// Returns location, order and scope of a strong load or store; "" for a weak one.
std::string strong_access(const Instruction& one);
/// Returns location, order and scope of an atomic operation.
std::string atomic_order(const Instruction& one);

}  // namespace rung::emulate
