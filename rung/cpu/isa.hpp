// SPDX-License-Identifier: Apache-2.0
//
// Instruction set of the CPU rungs: the best that this machine has, unless capped by
// RUNG_CPU_TARGET=scalar|avx2|avx512 in the environment (read once) or by cap_isa().
#pragma once

#include <cstdint>

#include "rung/core/export.hpp"

namespace rung::cpu {

enum class Isa : std::uint8_t { scalar, avx2, avx512 };

RUNG_API const char* to_string(Isa isa) noexcept;
/// Returns the instruction set that dispatch currently uses.
RUNG_API Isa isa() noexcept;
/// Limits dispatch to instruction sets up to `cap` in the whole process; Isa::avx512 lifts the
/// limit. Must not be called while kernels are running.
RUNG_API void cap_isa(Isa cap);

/// Returns the FMA instructions of the widest vectors that a core starts per cycle: 2, but 1 on AMD
/// Zen 4, whose 256-bit units execute 512-bit instructions in two halves.
RUNG_API int vector_fmas_a_cycle() noexcept;

}  // namespace rung::cpu
