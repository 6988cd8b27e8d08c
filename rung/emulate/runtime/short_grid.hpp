// SPDX-License-Identifier: Apache-2.0
// Grids with fewer threads than the elements that their kernel's guard admits.
#pragma once

#include <cstddef>
#include <string>

#include "rung/emulate/runtime/api.hpp"

namespace rung::cuda {

/// Remembers a successful launch with fewer threads than one of its integer arguments suggests an
/// array to have elements, in one or two dimensions.
void note_grid(const LaunchConfig& config, const std::string& kernel);
/// Reports such a launch when its array is copied to the host and exactly the elements beyond its
/// threads are unwritten.
void check_grid(const void* from, std::size_t bytes);

}  // namespace rung::cuda
