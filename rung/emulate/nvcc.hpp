// SPDX-License-Identifier: Apache-2.0
// nvcc's place in a build: `rung nvcc` takes its command line.
#pragma once

#include <string>
#include <vector>

namespace rung::emulate {

/// Does what nvcc would with these words. Throws Error as read_nvcc_words() and build() do.
void run_nvcc(const std::vector<std::string>& words);

}  // namespace rung::emulate
