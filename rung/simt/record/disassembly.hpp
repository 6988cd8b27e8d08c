// SPDX-License-Identifier: Apache-2.0
// Disassembly by objdump. Internal to simt/.
#pragma once

#include <cstdint>
#include <vector>

#include "rung/simt/record.hpp"

namespace rung::simt::record {

struct Instruction {
  enum class Flow : std::uint8_t { next, call, branch, jump, end };

  std::uintptr_t address = 0;  // in this process
  std::uintptr_t target = 0;   // of a call, branch or jump; 0: unknown or none
  Flow flow = Flow::next;
  Arithmetic arithmetic;
};

/// Disassembles [begin, end), which must be in one object of this process; empty without objdump
/// (binutils), or on a CPU other than x86-64.
std::vector<Instruction> disassemble(std::uintptr_t begin, std::uintptr_t end);

}  // namespace rung::simt::record
