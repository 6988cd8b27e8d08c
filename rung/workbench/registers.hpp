// SPDX-License-Identifier: Apache-2.0
// Resource usage, from the GPU compiler, of kernels that the simulated GPU ran.
#pragma once

#include <string>

#include "rung/device/kernel_usage.hpp"

namespace rung::workbench {

/// Finds the resources of the kernel of this demangled name, as compiled for the newest compute
/// capability up to `capability` (90 for 9.0), or for any if that is 0. Null: not known.
const KernelUsage* find_usage(const std::string& kernel, int capability);

}  // namespace rung::workbench
