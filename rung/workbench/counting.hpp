// SPDX-License-Identifier: Apache-2.0
// Counters of a rung on the simulated GPU, printed beside the computed results of a calculator.
#pragma once

#include <string>
#include <vector>

#include "rung/workbench/quantity.hpp"

namespace rung::simt::record {
struct Kernel;
}

namespace rung::workbench {

/// A counted figure, under the name of the result that it should equal.
struct CountedFigure {
  const char* name;
  double (*of)(const simt::record::Kernel& kernel);
  Unit unit = Unit::count;
};

/// Figures used by several calculators.
namespace counted {
double bytes_from_global_memory(const simt::record::Kernel& kernel);  // requested by threads
double sector_bytes(const simt::record::Kernel& kernel);              // in whole sectors
double bytes_from_shared_memory(const simt::record::Kernel& kernel);  // requested by threads
double shared_bytes_per_global_byte(const simt::record::Kernel& kernel);
double threads_per_block(const simt::record::Kernel& kernel);
double shared_bytes_per_block(const simt::record::Kernel& kernel);
double barriers_per_block(const simt::record::Kernel& kernel);
double sectors_per_store(const simt::record::Kernel& kernel);
double divergent_share(const simt::record::Kernel& kernel);
double additions(const simt::record::Kernel& kernel);  // floating-point, of all threads
double depth(const simt::record::Kernel& kernel);      // as in explain.hpp
}  // namespace counted

/// A rung on a problem, counted as by `rung explain`.
struct Counting {
  std::string op, rung, problem;
  std::string remark;  // printed after the command; "": none
  std::vector<CountedFigure> figures;

  [[nodiscard]] std::string command() const;
};

struct Counted {
  std::vector<double> values;  // one per figure; empty if not counted
  std::string why_not;
};

/// Runs the rung on the simulated GPU, if that takes less than a second.
Counted count(const Counting& counting);

}  // namespace rung::workbench
