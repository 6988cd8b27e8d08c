// SPDX-License-Identifier: Apache-2.0
// Registers and spills of rung's own CUDA kernels, as ptxas reported when the library was built.
#pragma once

#include <span>

#include "rung/core/export.hpp"

namespace rung {

/// Resources of one kernel, compiled for one compute capability.
struct KernelUsage {
  const char* name = "";                            // mangled
  int capability = 0;                               // 90 for 9.0
  int registers = 0;                                // per thread
  int stack_bytes = 0;                              // per thread: arrays and spills in local memory
  int spill_store_bytes = 0, spill_load_bytes = 0;  // static: loops count once
};
/// Returns the usage of all kernels; empty if the library was built without CUDA.
RUNG_API std::span<const KernelUsage> kernel_usage();

}  // namespace rung
