// SPDX-License-Identifier: Apache-2.0
// The least time of the kernels of an emulated program, by the roofs of `rung explain`.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "rung/bench/machine.hpp"

namespace rung::workbench {

/// Adds `bound` to each of `kernels`, as simt::record::to_json writes them: the least time on a
/// published GPU were all its SMs kept busy, and the unit that binds. Reads `occupancy`, which must
/// be there. `gpu` null: nothing is added.
void add_bound(nlohmann::ordered_json& kernels, const bench::Gpu* gpu);

}  // namespace rung::workbench
