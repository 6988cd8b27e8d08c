// SPDX-License-Identifier: Apache-2.0
// allow_unwritten(): exempts memory from the simulated GPU's check for reads of bytes that no
// kernel has written, for kernels that load padding and discard it.
#pragma once

#include <cstddef>

#include "rung/device/target.hpp"

#if !defined(__CUDACC__)
#include "rung/simt/record.hpp"
#endif

namespace rung::inline RUNG_TARGET {

/// Allows kernels to load the bytes before any kernel has written them. Unwritten bytes still hold
/// poison (NaN as floats), so that a result that depends on them fails verification. Has no effect
/// on a GPU.
inline void allow_unwritten([[maybe_unused]] const void* memory,
                            [[maybe_unused]] std::size_t bytes) {
#if !defined(__CUDACC__)
  simt::record::mark_initialized(memory, bytes);
#endif
}

}  // namespace rung::inline RUNG_TARGET
