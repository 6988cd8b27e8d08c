// SPDX-License-Identifier: Apache-2.0
// A progress line on standard error for long commands. If standard error is not a terminal, prints
// a line every half a minute instead: logs of quick commands stay clean, and long commands show
// that they are alive.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "rung/workbench/interrupt.hpp"

namespace rung::workbench {

class Progress {
 public:
  explicit Progress(std::int64_t total);
  ~Progress();  // erases the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Begins the next of `total` steps. step() and say() throw Interrupted after a Ctrl-C that an
  /// InterruptGuard recorded.
  void step(std::string_view doing);
  /// Shows an activity without advancing.
  void say(std::string_view doing);
  /// Shows an activity that may be short: redrawn no more often than by step().
  void mention(std::string_view doing);

  /// Seconds between lines if standard error is not a terminal; set by tests.
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
