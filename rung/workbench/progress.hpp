// SPDX-License-Identifier: Apache-2.0
// One line on the terminal that tells how far a long command is and what it is doing. Goes to
// standard error. Where that is no terminal, a line every half a minute tells the same: logs of
// what is quick stay clean, and what takes minutes does not look dead.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "rung/workbench/interrupt.hpp"

namespace rung::workbench {

class Progress {
 public:
  explicit Progress(std::int64_t total);
  ~Progress();  // wipes the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Begins the next of `total` steps. Both throw Interrupted after a Ctrl-C that an InterruptGuard
  /// noted.
  void step(std::string_view doing);
  /// Tells what is being done without a step forward.
  void say(std::string_view doing);
  /// Says what is being done, for work that may be short: drawn no more often than step().
  void mention(std::string_view doing);

  /// Seconds between the lines where standard error is no terminal; tests set it.
  static inline double line_seconds = 30;

 private:
  void draw(std::string_view doing, bool now);
  void print_line(std::string_view doing);

  std::int64_t total_;
  std::int64_t done_ = 0;
  bool on_terminal_;
  std::optional<OpenLine> line_;
  double drawn_at_ = 0;
  double began_at_;
};

}  // namespace rung::workbench
