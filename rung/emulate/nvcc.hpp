// SPDX-License-Identifier: Apache-2.0
// `rung nvcc`, a replacement for nvcc in builds.
#pragma once

#include <string>
#include <vector>

namespace rung::emulate {

/// Runs nvcc's command line. Throws Error as read_nvcc_words() and build() do.
void run_nvcc(const std::vector<std::string>& words);

}  // namespace rung::emulate
