// SPDX-License-Identifier: Apache-2.0
// Ctrl-C (SIGINT) in a long command: what was finished is printed before the program ends.
#pragma once

#include <string_view>

namespace rung::workbench {

/// Thrown where a command stops because of Ctrl-C.
struct Interrupted {};

/// While one lives, the first SIGINT only sets a flag, and the second ends the program. A SIGINT
/// that is ignored stays ignored.
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

/// While one lives, standard error holds a line without a newline: SIGINT writes it first.
class OpenLine {
 public:
  OpenLine();
  ~OpenLine();
  OpenLine(const OpenLine&) = delete;
  OpenLine& operator=(const OpenLine&) = delete;
};

}  // namespace rung::workbench
