// SPDX-License-Identifier: Apache-2.0
// Commands of the program `rung`, one file each. Like a rung, a command registers itself:
//   const Command self{{.name = "list", .order = 10, .summary = "the ladders", .setup = setup}};
// so that adding a command is adding a file.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rung/core/error.hpp"

namespace CLI {  // NOLINT: the library says so
class App;
class Option;
}  // namespace CLI

namespace rung::workbench {

/// Exit code of the program. Part of the interface: scripts branch on it.
enum ExitCode : int {
  exit_good = 0,
  exit_failed = 1,    // a check failed
  exit_usage = 2,     // the command line or a file given is wrong
  exit_not_here = 3,  // right, but not available here; the message says why
};
/// Returns the exit code for an Error that reaches main().
ExitCode exit_code(ErrorCode code) noexcept;

/// Completion request of a shell: the word to complete, and the words before it.
struct Completing {
  std::string_view word;
  std::vector<std::string> before;
};
/// Words that could stand there; those that do not begin like the word are left out afterwards.
using Candidates = std::function<std::vector<std::string>(const Completing&)>;

/// An option or positional argument, and what it accepts. Its value goes where add_option() was
/// told.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option required(bool required = true) const;
  /// Sets the name of the value in help: N, WORD, FILE; a FILE is completed by the shell.
  Option type_name(const std::string& name) const;
  Option between(int min, int max) const;
  Option between(double min, double max) const;
  Option positive() const;
  Option not_negative() const;
  Option one_of(std::vector<std::string> words) const;
  /// Sets the candidates that a shell completes its value from.
  Option completes(Candidates candidates) const;
  Option needs(Option other) const;
  /// Makes each mention of a list option take one word, not all that follow.
  Option word_by_word() const;
  [[nodiscard]] bool given() const;

 private:
  CLI::Option* option_;
};

/// Reads a command's part of the command line. A handle: copies mean the same parser. It is CLI11
/// behind a curtain: its header, seconds to compile, is for command.cpp alone.
class Parser {
 public:
  explicit Parser(CLI::App* app) : app_(app) {}

  /// T: std::string, int, double, std::uint64_t, or a vector of std::string or double.
  template <class T>
  Option add_option(const std::string& names, T& value, const std::string& help) const;
  Option add_flag(const std::string& names, bool& value, const std::string& help) const;

  // Help, in its order: what the command is for, a paragraph or more; usage and options; examples;
  // what its exit codes mean; and whatever else is to be said. Lines are wrapped to the terminal,
  // except that those that begin with a blank stay as they are.
  void purpose(const std::string& text) const;
  void example(const std::string& command, const std::string& comment = "") const;
  void exit_codes(const std::vector<std::pair<int, std::string>>& meanings) const;
  void footer(const std::string& text) const;

  /// A command below this one; one of them must then be given.
  [[nodiscard]] Parser add_command(const std::string& name, const std::string& summary) const;
  [[nodiscard]] bool parsed() const;

  /// Options may be unknown and stand among the words: all of which unread() returns.
  void leave_unknown() const;
  [[nodiscard]] std::vector<std::string> unread() const;

 private:
  CLI::App* app_;
};

/// Description of a command.
struct CommandSpec {
  /// Runs after the command line was read; returns an exit code.
  using Action = std::function<int()>;

  const char* name;
  int order;            // sorts the commands in the help text
  const char* summary;  // "" hides it from the list of commands
  /// Adds options to the command's own parser and returns what to do with them.
  Action (*setup)(Parser app);
  /// Reads the words behind the command itself, where they are those of another program's command
  /// line; null: the parser does. A first word -h or --help still prints help.
  int (*run_words)(const std::vector<std::string>& words) = nullptr;
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

/// Returns the words after "--" on the command line, which no option takes.
const std::vector<std::string>& words_behind();

/// Returns completions of the last of `words`, which are the command line up to the cursor without
/// "rung"; that word may be empty. A last entry ":files" tells the shell to add files.
std::vector<std::string> complete(const std::vector<std::string>& words);

/// The whole program: reads the command line, runs the command, prints errors. Never throws.
int run_program(int argc, const char* const* argv);

}  // namespace rung::workbench
