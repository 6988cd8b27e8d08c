// SPDX-License-Identifier: Apache-2.0
// GPUs by their data sheets, to predict kernels on GPUs that this machine does not have. GPUs of
// this machine are measured (machine.hpp).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rung/bench/machine.hpp"

namespace rung::bench {

/// Returns the GPU with a key such as "h200" or "rtx4090", or null if unknown. Rates are peaks:
/// reads and copies have the same bandwidth, arithmetic is without sparsity.
const Gpu* published_gpu(std::string_view name);
/// Returns all keys: "h200", "h100" ...
std::vector<std::string> published_gpu_keys();
/// Returns all keys as one text: "h200, h100, ...".
std::string published_gpu_names();

}  // namespace rung::bench
