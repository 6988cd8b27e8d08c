// SPDX-License-Identifier: Apache-2.0
// What `rung emulate` tells of kernels beyond what was counted in each line.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "rung/bench/machine.hpp"

namespace rung::workbench {

/// Adds to each of `kernels`, as simt::record::to_json writes them, how many of its largest block a
/// SM of this compute capability (90 for 9.0) holds at once, and what limits that; and how many
/// waves of blocks its largest grid is on so many SMs (0: not known).
void add_occupancy(nlohmann::ordered_json& kernels, int capability, int multiprocessors);

/// The published GPU of this name; by "" the first of the compute capability, null: there is none.
/// Throws Error(invalid_argument) that lists the names.
const bench::Gpu* find_gpu(const std::string& name, int capability);

/// Adds to each of `kernels` where it stands under the roofs of a published GPU, by the operations
/// of all threads and the bytes that the model of the caches moves from and to memory. `gpu` null:
/// nothing is added.
void add_roofline(nlohmann::ordered_json& kernels, const bench::Gpu* gpu);

/// A few lines per kernel.
std::string kernel_summary(const nlohmann::ordered_json& kernels);

}  // namespace rung::workbench
