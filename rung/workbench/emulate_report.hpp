// SPDX-License-Identifier: Apache-2.0
// What `rung emulate` tells of kernels beyond what was counted in each line.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace rung::workbench {

/// Adds to each of `kernels`, as simt::record::to_json writes them, how many of its largest block a
/// SM of this compute capability (90 for 9.0) holds at once, and what limits that.
void add_occupancy(nlohmann::ordered_json& kernels, int capability);

/// A few lines per kernel.
std::string kernel_summary(const nlohmann::ordered_json& kernels);

}  // namespace rung::workbench
