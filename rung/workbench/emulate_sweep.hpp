// SPDX-License-Identifier: Apache-2.0
// Compiles and runs a program once per value of a macro and compares the figures of its kernels:
// `rung emulate --sweep TILE_WIDTH=8,16,32`.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace rung::workbench {

struct SweptMacro {
  std::string name;
  std::vector<std::string> values;
};
/// Parses "NAME=V1,V2" options. Throws Error(invalid_argument) for other syntax, repeated values, a
/// name swept twice or also in `definitions` (of -D), and more than 64 combinations.
std::vector<SweptMacro> parse_sweeps(const std::vector<std::string>& given,
                                     const std::vector<std::string>& definitions);

/// One value per macro, in their order.
using SweptValues = std::vector<std::string>;
/// Returns all combinations; the values of the last macro change fastest.
std::vector<SweptValues> combinations(const std::vector<SweptMacro>& macros);
/// Returns definitions for -D, such as "TILE_WIDTH=8".
std::vector<std::string> definitions_of(const std::vector<SweptMacro>& macros,
                                        const SweptValues& values);

/// One run of a sweep.
struct SweepRun {
  SweptValues values;
  std::string error;  // compile error; "": it ran
  int exit_code = 0;  // of the program, or of the error
  nlohmann::ordered_json findings = nlohmann::ordered_json::array();
  nlohmann::ordered_json kernels = nlohmann::ordered_json::array();  // with occupancy and bound
};

/// Returns a table with a row per run and kernel, and the meaning of its columns.
std::string sweep_text(const std::vector<SweptMacro>& macros, const std::vector<SweepRun>& runs);
nlohmann::ordered_json sweep_json(const std::vector<SweptMacro>& macros,
                                  const std::vector<SweepRun>& runs);
/// Returns `if_found` (66) if any run has findings, else the first nonzero exit code of a run.
int sweep_exit_code(const std::vector<SweepRun>& runs, int if_found);

}  // namespace rung::workbench
