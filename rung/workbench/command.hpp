// SPDX-License-Identifier: Apache-2.0
// Commands of the program `rung`, one file each. Like a rung, a command registers itself:
//   const Command self{{.name = "list", .order = 10, .summary = "the ladders", .setup = setup}};
// so that adding a command is adding a file.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "rung/core/error.hpp"

namespace rung::workbench {

/// What the program says to its caller. Part of the interface: scripts branch on it.
enum ExitCode : int {
  exit_good = 0,
  exit_failed = 1,    // a check failed
  exit_usage = 2,     // the command line or a file given is wrong
  exit_not_here = 3,  // right, but not available here; the message says why
};
/// How an Error that reaches the top ends the program.
ExitCode exit_code(ErrorCode code) noexcept;

/// What a command tells about itself.
struct CommandSpec {
  /// Runs after the command line was read; returns an exit code.
  using Action = std::function<int()>;

  const char* name;
  int order;  // sorts the commands in the help text
  const char* summary;
  /// Adds options to the command's own parser and returns what to do with them.
  Action (*setup)(CLI::App& app);
};

class Command {
 public:
  explicit Command(const CommandSpec& spec);
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  const CommandSpec spec;

 private:
  friend std::vector<const Command*> commands();
  const Command* next_;
};

/// Every command of this program, in the order of the help text.
std::vector<const Command*> commands();

/// What stands behind a "--" of the command line: words for somebody else, which no option takes.
const std::vector<std::string>& words_behind();

/// The whole program: reads the command line, runs the command, prints errors. Never throws.
int run_program(int argc, const char* const* argv);

}  // namespace rung::workbench
