// SPDX-License-Identifier: Apache-2.0
// Merges findings of one program under several thread orders.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace rung::workbench {

/// Merges the findings of runs under different orders. Findings of different runs are merged if
/// they agree in kind, memory space and lines; threads and elements differ between orders.
class OrderedFindings {
 public:
  /// Adds a run. `texts`: the findings as text, in the same order, followed by further messages of
  /// the run.
  void add(const std::string& order, int exit_code, const nlohmann::ordered_json& findings,
           const std::vector<std::string>& texts);

  /// Returns the report: each finding with the orders under which it appears, further messages, and
  /// exit codes if they differ between orders.
  [[nodiscard]] std::string text() const;
  /// Returns the findings for --json: each with a list `orders`.
  [[nodiscard]] nlohmann::ordered_json json() const;
  [[nodiscard]] std::size_t size() const { return merged_.size(); }

 private:
  struct Run {
    std::string order;
    int exit_code;
  };
  struct Merged {
    nlohmann::ordered_json finding;
    std::string text;
    std::vector<std::size_t> runs;
  };

  [[nodiscard]] std::string orders_of(const Merged& one) const;

  std::vector<Run> runs_;
  std::vector<Merged> merged_;
  std::vector<std::string> notes_;
};

}  // namespace rung::workbench
