// SPDX-License-Identifier: Apache-2.0
// Grids with fewer threads than the elements that their kernel's guard admits.
#pragma once

#include <cstddef>
#include <string>

#include "rung/emulate/runtime/api.hpp"

namespace rung::cuda {

/// Remembers a launch that has ended well, if it has fewer threads than one of its integer
/// arguments says that an array of another has elements, in one dimension or two.
void note_grid(const LaunchConfig& config, const std::string& kernel);
/// Reports such a launch when its array is copied to the host and exactly the elements beyond its
/// threads have never been written.
void check_grid(const void* from, std::size_t bytes);

}  // namespace rung::cuda
