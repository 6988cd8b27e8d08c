// SPDX-License-Identifier: Apache-2.0
// Least time of an emulated program's kernels, by the roofs of `rung explain`.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "rung/bench/machine.hpp"

namespace rung::workbench {

/// Adds `bound` to each of `kernels` (JSON of simt::record::to_json): the least time on a published
/// GPU with all SMs busy, and the limiting unit. Requires `occupancy`. No effect if `gpu` is null.
void add_bound(nlohmann::ordered_json& kernels, const bench::Gpu* gpu);

}  // namespace rung::workbench
