// SPDX-License-Identifier: Apache-2.0
// `rung nvcc`, a replacement for nvcc in builds.
#pragma once

#include <string>
#include <vector>

namespace rung::emulate {

/// Executes a command line of nvcc. Throws the errors of read_nvcc_words() and build().
void run_nvcc(const std::vector<std::string>& words);

}  // namespace rung::emulate
