// SPDX-License-Identifier: Apache-2.0
// What a program left that ran on the simulated GPU: its exit code and the report of its runtime.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace rung::workbench {

/// Output of the program's runtime: the number of findings, then the fields of the JSON.
struct Outcome {
  int exit_code = 0;
  std::size_t findings = 0;
  std::string fields;
  std::vector<std::string> texts, notes;  // of findings, and what else it told; of several orders

  [[nodiscard]] nlohmann::ordered_json parsed() const {
    return nlohmann::ordered_json::parse("{" + fields + "}");
  }
  void take(const nlohmann::ordered_json& report);
};

/// Returns the files of a program's processes: of the first that of this name, of others one beside
/// it, with their number behind a dot.
std::vector<std::string> report_files(const std::string& path);
/// Reads all of them as one.
Outcome read_outcomes(const std::string& path);

/// Throws Error(io), before anything runs in vain, for a file of --json that cannot be written.
void check_report_path(const std::string& path);

}  // namespace rung::workbench
