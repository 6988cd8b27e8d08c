// SPDX-License-Identifier: Apache-2.0
// `rung bench --gate`: timing comparisons that fail if the library got slower. They are not tests:
// the speed of a machine must not decide whether a build is correct.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace rung::workbench {

/// A problem of an awkward shape and one of a plain shape, with equal bytes or operations.
struct AwkwardAndPlain {
  const char* op;
  const char* awkward;
  const char* plain;
  double factor;  // allowed time of the awkward problem, relative to the plain one
};
std::span<const AwkwardAndPlain> awkward_shapes();

/// One comparison, by its best try.
struct GateRow {
  std::string op;
  std::string problem;
  std::string beside;  // the plain problem, or "RUNG instead of CHOSEN"
  double ratio = 0;    // of the times
  double limit = 0;
  std::string note;  // describes a wrong result

  [[nodiscard]] bool good() const { return note.empty() && ratio <= limit; }
};

/// Formats rows as text, with failed rows last, or as one JSON object.
std::string gate_text(const std::vector<GateRow>& rows);
std::string gate_json(const std::vector<GateRow>& rows);

/// Runs all comparisons of an operator, or of all operators if `op` is empty. Prints rows and a
/// summary, or JSON, which is also written to `file` unless that is "". Returns an exit code.
int run_gate(const std::string& op, bool json, const std::string& file);

}  // namespace rung::workbench
