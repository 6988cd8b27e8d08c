// SPDX-License-Identifier: Apache-2.0
// What instructions on memory say of order and scope, as the simulator names it.
#pragma once

#include <string>

#include "rung/emulate/ptx.hpp"

namespace rung::emulate {

/// Place, order and scope of a load or store that is more than a plain one; "": it is plain.
std::string strong_access(const Instruction& one);
/// The same of an atomic operation.
std::string atomic_order(const Instruction& one);

}  // namespace rung::emulate
