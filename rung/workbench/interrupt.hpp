// SPDX-License-Identifier: Apache-2.0
// Ctrl-C (SIGINT) in a long command: what was finished is printed before the program ends.
#pragma once

#include <string_view>

namespace rung::workbench {

/// Thrown where a command stops because of Ctrl-C.
struct Interrupted {};

/// Defers SIGINT during its lifetime: the first one only sets a flag, and the second ends the
/// program. An ignored SIGINT stays ignored.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  [[nodiscard]] static bool interrupted() noexcept;
  /// Throws Interrupted after a SIGINT.
  static void check();
  /// Flushes standard output, says `what` on standard error, and ends the program as SIGINT ends
  /// one.
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
