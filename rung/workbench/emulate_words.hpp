// SPDX-License-Identifier: Apache-2.0
// The words of `rung emulate` that are not its own options: sources, and options of nvcc.
#pragma once

#include <string>
#include <vector>

#include "rung/emulate/compile.hpp"

namespace rung::workbench {

/// Adds sources and options to `sources`. Options that concern chips alone do nothing. Throws
/// Error(invalid_argument) that names an option that nvcc does not have, or a file that is no CUDA.
void read_emulate_words(const std::vector<std::string>& words, emulate::Sources& sources);

}  // namespace rung::workbench
