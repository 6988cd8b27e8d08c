// SPDX-License-Identifier: Apache-2.0
// `rung bench --gate`: comparisons of times that fail where the library got slower. They are no
// tests, because how fast a machine is must not decide whether a build is right.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace rung::workbench {

/// A problem of an awkward shape beside one of a plain shape, of as many bytes or operations.
struct AwkwardAndPlain {
  const char* op;
  const char* awkward;
  const char* plain;
  double factor;  // what the awkward one may take of the plain one's time
};
std::span<const AwkwardAndPlain> awkward_shapes();

/// One comparison, at its best of several tries.
struct GateRow {
  std::string op;
  std::string problem;
  std::string beside;  // the plain problem, or "RUNG instead of CHOSEN"
  double ratio = 0;    // of times
  double limit = 0;
  std::string note;  // of a wrong result

  [[nodiscard]] bool good() const { return note.empty() && ratio <= limit; }
};

/// Text, or one JSON object; of the text those rows that fail come last.
std::string gate_text(const std::vector<GateRow>& rows);
std::string gate_json(const std::vector<GateRow>& rows);

/// Runs all comparisons of an operator, or of all where `op` is empty; prints rows and a summary,
/// or JSON, which is written to `file`, too, unless that is "". Returns an exit code.
int run_gate(const std::string& op, bool json, const std::string& file);

}  // namespace rung::workbench
