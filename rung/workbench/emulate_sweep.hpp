// SPDX-License-Identifier: Apache-2.0
// A program compiled and run once per value of a macro, so that the figures of its kernels can be
// compared: `rung emulate --sweep TILE_WIDTH=8,16,32`.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace rung::workbench {

struct SweptMacro {
  std::string name;
  std::vector<std::string> values;
};
/// Reads "NAME=V1,V2" of each option. Throws Error(invalid_argument) for another form, a value
/// given twice, a name that is swept twice or that `definitions` (of -D) have too, and more than
/// 64 combinations.
std::vector<SweptMacro> parse_sweeps(const std::vector<std::string>& given,
                                     const std::vector<std::string>& definitions);

/// One value of each macro, in their order.
using SweptValues = std::vector<std::string>;
/// Returns each combination; the values of the last macro change fastest.
std::vector<SweptValues> combinations(const std::vector<SweptMacro>& macros);
/// "TILE_WIDTH=8", as -D takes it.
std::vector<std::string> definitions_of(const std::vector<SweptMacro>& macros,
                                        const SweptValues& values);

/// One run.
struct SweepRun {
  SweptValues values;
  std::string error;  // why it did not compile; "": it ran
  int exit_code = 0;  // of the program, or what the error stands for
  nlohmann::ordered_json findings = nlohmann::ordered_json::array();
  nlohmann::ordered_json kernels = nlohmann::ordered_json::array();  // with occupancy and bound
};

/// A table with a line per run and kernel, and what its columns mean.
std::string sweep_text(const std::vector<SweptMacro>& macros, const std::vector<SweepRun>& runs);
nlohmann::ordered_json sweep_json(const std::vector<SweptMacro>& macros,
                                  const std::vector<SweepRun>& runs);
/// Returns 66 where something was found, else the exit code of the first run that did not end well.
int sweep_exit_code(const std::vector<SweepRun>& runs, int if_found);

}  // namespace rung::workbench
