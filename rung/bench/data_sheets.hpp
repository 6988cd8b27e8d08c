// SPDX-License-Identifier: Apache-2.0
// GPUs by their data sheets, to tell where a kernel would stand on one that is not here. What is
// here is measured instead (machine.hpp).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rung/bench/machine.hpp"

namespace rung::bench {

/// "h200", "a100", "t4", "rtx4090"; null: none of this name. Rates are peaks: reading and copying
/// alike, arithmetic without sparsity.
const Gpu* published_gpu(std::string_view name);
/// "h200", "a100" ...
std::vector<std::string> published_gpu_keys();
/// "h200, a100, ...".
std::string published_gpu_names();

}  // namespace rung::bench
