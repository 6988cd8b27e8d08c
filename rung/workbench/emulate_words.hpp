// SPDX-License-Identifier: Apache-2.0
// The words of `rung emulate` other than its own options: sources and nvcc's options.
#pragma once

#include <string>
#include <vector>

#include "rung/emulate/compile.hpp"

namespace rung::workbench {

/// Adds sources and options to `sources`. Options that only concern code generation for GPUs are
/// ignored. Throws Error(invalid_argument) that names an option unknown to nvcc, or a file that is
/// not CUDA.
void read_emulate_words(const std::vector<std::string>& words, emulate::Sources& sources);

}  // namespace rung::workbench
