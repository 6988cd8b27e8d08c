// SPDX-License-Identifier: Apache-2.0
// What the simulated GPU counts of a rung, beside what a calculator computes of it.
#pragma once

#include <string>
#include <vector>

#include "rung/workbench/quantity.hpp"

namespace rung::simt::record {
struct Kernel;
}

namespace rung::workbench {

/// A counted figure, under the name of the result that it is to equal.
struct CountedFigure {
  const char* name;
  double (*of)(const simt::record::Kernel& kernel);
  Unit unit = Unit::count;
};

/// Figures that several calculators compare.
namespace counted {
double bytes_from_global_memory(const simt::record::Kernel& kernel);  // that threads ask for
double sector_bytes(const simt::record::Kernel& kernel);              // the same in whole sectors
double bytes_from_shared_memory(const simt::record::Kernel& kernel);  // that threads ask for
double shared_bytes_per_global_byte(const simt::record::Kernel& kernel);
double threads_per_block(const simt::record::Kernel& kernel);
double shared_bytes_per_block(const simt::record::Kernel& kernel);
double barriers_per_block(const simt::record::Kernel& kernel);
double sectors_per_store(const simt::record::Kernel& kernel);
double divergent_share(const simt::record::Kernel& kernel);
double additions(const simt::record::Kernel& kernel);  // floating ones, of all threads
double depth(const simt::record::Kernel& kernel);      // as in explain.hpp
}  // namespace counted

/// A rung on a problem: what `rung explain` would count of it.
struct Counting {
  std::string op, rung, problem;
  std::string remark;  // behind the command; "": none
  std::vector<CountedFigure> figures;

  [[nodiscard]] std::string command() const;
};

struct Counted {
  std::vector<double> values;  // of the figures; empty where nothing was counted
  std::string why_not;
};

/// Runs it on the simulated GPU, where that takes less than a second.
Counted count(const Counting& counting);

}  // namespace rung::workbench
