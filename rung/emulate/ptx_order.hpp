// SPDX-License-Identifier: Apache-2.0
// Translates the memory order and scope of PTX instructions for the simulator.
#pragma once

#include <string>

#include "rung/emulate/ptx.hpp"

namespace rung::emulate {

/// Returns source location, order and scope of a strong load or store, as arguments of the
/// simulator's function; "" for a weak access.
std::string strong_access(const Instruction& one);
/// Returns source location, order and scope of an atomic operation, as arguments of the simulator's
/// function.
std::string atomic_order(const Instruction& one);

}  // namespace rung::emulate
