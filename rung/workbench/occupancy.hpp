// SPDX-License-Identifier: Apache-2.0
// Declarations for both forms of `rung occupancy`: for one SM, and for the SMs of several GPUs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "rung/bench/occupancy.hpp"
#include "rung/workbench/calculator.hpp"

namespace rung::workbench {

/// Formats a fraction of an SM: "12.5 %".
std::string percent_of_sm(double part);
nlohmann::ordered_json occupancy_to_json(int threads, const bench::Occupancy& one);
/// Adds a block's resource needs to the inputs of the page; threads 0: any size.
void add_needs(const bench::BlockNeeds& block, Sheet& sheet);

/// A GPU named by --gpu.
struct NamedMultiprocessor {
  std::string name;
  const bench::Multiprocessor* multiprocessor = nullptr;
};

/// Parses a list of GPUs: "h100,t4". Throws Error(invalid_argument) that lists the names.
std::vector<NamedMultiprocessor> parse_gpus(const std::string& text);
/// Prints one line per GPU, for the given block size or for the size of the highest occupancy.
/// Throws Error(invalid_argument) if no GPU can launch such blocks.
int occupancy_on_gpus(const std::vector<NamedMultiprocessor>& gpus, const bench::BlockNeeds& block,
                      bool json);

}  // namespace rung::workbench
