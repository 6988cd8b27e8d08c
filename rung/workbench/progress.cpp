// SPDX-License-Identifier: Apache-2.0
// The progress line: a bar, a percentage and the current activity.
#include "rung/workbench/progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "rung/bench/clock.hpp"
#include "rung/workbench/terminal.hpp"

namespace rung::workbench {
namespace {

constexpr int bar_width = 24;
constexpr double redraw_seconds = 0.05;  // more frequent redraws flicker

}  // namespace

Progress::Progress(std::int64_t total)
    : total_(std::max<std::int64_t>(total, 1)),
      on_terminal_(is_terminal(STDERR_FILENO)),
      began_at_(bench::now()) {
  if (on_terminal_) {
    line_.emplace();
  } else {
    drawn_at_ = began_at_;
  }
}

Progress::~Progress() {
  if (on_terminal_) fmt::print(stderr, "\r\033[K");
}

void Progress::step(std::string_view doing) {
  draw(doing, false);
  done_ = std::min(done_ + 1, total_);
}

void Progress::say(std::string_view doing) { draw(doing, true); }

void Progress::mention(std::string_view doing) { draw(doing, false); }

void Progress::print_line(std::string_view doing) {
  const double time = bench::now();
  if (time - drawn_at_ < line_seconds) return;
  drawn_at_ = time;
  fmt::print(stderr, "{} % after {:.0f} s: {}\n", done_ * 100 / total_, time - began_at_, doing);
  std::fflush(stderr);
}

void Progress::draw(std::string_view doing, bool now) {
  InterruptGuard::check();
  if (!on_terminal_) {
    print_line(doing);
    return;
  }
  const double time = bench::now();
  if (!now && time - drawn_at_ < redraw_seconds) return;
  drawn_at_ = time;
  const int filled = static_cast<int>(done_ * bar_width / total_);
  std::string line = fmt::format("[{:#<{}}{:.<{}}] {:3} %  ", "", filled, "", bar_width - filled,
                                 done_ * 100 / total_);
  line += doing;
  // A carriage return could not erase a line that wraps.
  line.resize(std::min(line.size(), terminal_width(STDERR_FILENO) - 1));
  fmt::print(stderr, "\r{}\033[K", line);
  std::fflush(stderr);
}

}  // namespace rung::workbench
