// SPDX-License-Identifier: Apache-2.0
// What the parts of `rung occupancy` share: one SM, and one of each of several GPUs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "rung/bench/occupancy.hpp"
#include "rung/workbench/calculator.hpp"

namespace rung::workbench {

/// "12.5 %".
std::string percent_of_sm(double part);
nlohmann::ordered_json occupancy_to_json(int threads, const bench::Occupancy& one);
/// Adds what a block needs to the page's inputs; threads 0: any size.
void add_needs(const bench::BlockNeeds& block, Sheet& sheet);

/// A GPU of --gpu.
struct NamedMultiprocessor {
  std::string name;
  const bench::Multiprocessor* multiprocessor = nullptr;
};

/// Reads "h100,t4". Throws Error(invalid_argument) that lists the names.
std::vector<NamedMultiprocessor> parse_gpus(const std::string& text);
/// Prints a line per GPU: of one size of block, or of the size that reaches the most. Throws
/// Error(invalid_argument) where no GPU takes such blocks.
int occupancy_on_gpus(const std::vector<NamedMultiprocessor>& gpus, const bench::BlockNeeds& block,
                      bool json);

}  // namespace rung::workbench
