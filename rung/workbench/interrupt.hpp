// SPDX-License-Identifier: Apache-2.0
// Ctrl-C (SIGINT) in a long command: finished results are printed before the program ends.
#pragma once

#include <string_view>

namespace rung::workbench {

/// Thrown when a command stops because of Ctrl-C.
struct Interrupted {};

/// Defers SIGINT during its lifetime: the first sets a flag, the second ends the program. An
/// ignored SIGINT stays ignored.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  [[nodiscard]] static bool interrupted() noexcept;
  /// Throws Interrupted after a SIGINT.
  static void check();
  /// Flushes standard output, prints `what` to standard error, and ends the program as SIGINT
  /// would.
  [[noreturn]] static void end(std::string_view what);
};

/// Marks standard error as containing an unfinished line during its lifetime: SIGINT writes a
/// newline first.
class OpenLine {
 public:
  OpenLine();
  ~OpenLine();
  OpenLine(const OpenLine&) = delete;
  OpenLine& operator=(const OpenLine&) = delete;
};

}  // namespace rung::workbench
