// SPDX-License-Identifier: Apache-2.0
// Per-kernel results of `rung emulate`, beside the counters per line.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "rung/bench/machine.hpp"

namespace rung::workbench {

/// Adds occupancy to each of `kernels` (JSON of simt::record::to_json): how many blocks of its
/// largest size an SM of this compute capability (90 for 9.0) holds, the limiting resource, and the
/// waves of its largest grid on `multiprocessors` SMs (0: unknown).
void add_occupancy(nlohmann::ordered_json& kernels, int capability, int multiprocessors);

/// Returns the published GPU of this name; for "", the first of the compute capability, or null if
/// there is none. Throws Error(invalid_argument) that lists the names.
const bench::Gpu* find_gpu(const std::string& name, int capability);

/// Adds to each of `kernels` its position under a published GPU's roofline: operations of all
/// threads, and bytes to and from memory by the cache model. No effect if `gpu` is null.
void add_roofline(nlohmann::ordered_json& kernels, const bench::Gpu* gpu);

/// Returns a few lines of text per kernel.
std::string kernel_summary(const nlohmann::ordered_json& kernels);

}  // namespace rung::workbench
