// SPDX-License-Identifier: Apache-2.0
// Results of a program that ran on the simulated GPU: its exit code and its runtime's report.
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
  std::vector<std::string> texts, notes;  // of findings, and further messages; for several orders

  [[nodiscard]] nlohmann::ordered_json parsed() const {
    return nlohmann::ordered_json::parse("{" + fields + "}");
  }
  void take(const nlohmann::ordered_json& report);
};

/// Returns the report files of a program's processes: `path` for the first process, `path`.N for
/// others.
std::vector<std::string> report_files(const std::string& path);
/// Reads and merges all report files.
Outcome read_outcomes(const std::string& path);

/// Throws Error(io) if the file of --json cannot be written, before anything runs.
void check_report_path(const std::string& path);

}  // namespace rung::workbench
