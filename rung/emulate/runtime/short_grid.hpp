// SPDX-License-Identifier: Apache-2.0
// Detects grids with fewer threads than the elements that the kernel's guard admits.
#pragma once

#include <cstddef>
#include <string>

#include "rung/emulate/runtime/api.hpp"

namespace rung::cuda {

/// Records a successful launch if an integer argument, or a product of two, suggests an array with
/// more elements than the launch has threads.
void note_grid(const LaunchConfig& config, const std::string& kernel);
/// Reports such a launch when its array is copied to the host and exactly the elements beyond its
/// threads are unwritten.
void check_grid(const void* from, std::size_t bytes);

}  // namespace rung::cuda
