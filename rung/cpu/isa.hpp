// SPDX-License-Identifier: Apache-2.0
//
// Instruction set that the CPU rungs use: the best that this machine has, unless capped - by
// RUNG_CPU_TARGET=scalar|avx2|avx512 in the environment, read once, or by cap_isa().
#pragma once

#include <cstdint>

#include "rung/core/export.hpp"

namespace rung::cpu {

enum class Isa : std::uint8_t { scalar, avx2, avx512 };

RUNG_API const char* to_string(Isa isa) noexcept;
/// Returns the instruction set that dispatch uses now.
RUNG_API Isa isa() noexcept;
/// Uses nothing above `cap` from here on, in the whole process; Isa::avx512 lifts the cap. Not to
/// be called while kernels are running.
RUNG_API void cap_isa(Isa cap);

/// Multiply-adds of the widest vectors that a core starts in a cycle: 2, but 1 on AMD Zen 4, whose
/// units of 256 bits take 512 in two halves.
RUNG_API int vector_fmas_a_cycle() noexcept;

}  // namespace rung::cpu
