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

/// Exit codes of the program; part of the interface.
enum ExitCode : int {
  exit_good = 0,
  exit_failed = 1,    // a check failed
  exit_usage = 2,     // the command line or a file given is wrong
  exit_not_here = 3,  // valid, but not available here
};
/// Returns the exit code for an Error that reaches main().
ExitCode exit_code(ErrorCode code) noexcept;

/// Completion request of a shell: the word to complete and the words before it.
struct Completing {
  std::string_view word;
  std::vector<std::string> before;
};
/// Returns candidate words; the caller removes candidates that do not begin with the word.
using Candidates = std::function<std::vector<std::string>(const Completing&)>;

/// Handle of an option or positional argument, with its constraints. The value is stored in the
/// variable passed to add_option().
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option required(bool required = true) const;
  /// Sets the value name in help: N, WORD, FILE; the shell completes FILE.
  Option type_name(const std::string& name) const;
  Option between(int min, int max) const;
  Option between(double min, double max) const;
  Option positive() const;
  Option not_negative() const;
  Option one_of(std::vector<std::string> words) const;
  /// Sets the source of completion candidates for the value.
  Option completes(Candidates candidates) const;
  Option needs(Option other) const;
  /// Makes each mention of a list option take one word, not all that follow.
  Option word_by_word() const;
  [[nodiscard]] bool given() const;

 private:
  CLI::Option* option_;
};

/// Parser of a command's arguments. A handle: copies refer to the same parser. Hides CLI11, whose
/// header takes seconds to compile.
class Parser {
 public:
  explicit Parser(CLI::App* app) : app_(app) {}

  /// T: std::string, int, double, std::uint64_t, or a vector of std::string or double.
  template <class T>
  Option add_option(const std::string& names, T& value, const std::string& help) const;
  Option add_flag(const std::string& names, bool& value, const std::string& help) const;

  // Sections of the help, in their order: purpose (one or more paragraphs), usage and options,
  // examples, exit codes, notes. Lines are wrapped to the terminal, except lines that begin with a
  // blank.
  void purpose(const std::string& text) const;
  void example(const std::string& command, const std::string& comment = "") const;
  void exit_codes(const std::vector<std::pair<int, std::string>>& meanings) const;
  void footer(const std::string& text) const;

  /// Adds a subcommand; if there are any, one must be given.
  [[nodiscard]] Parser add_command(const std::string& name, const std::string& summary) const;
  [[nodiscard]] bool parsed() const;

  /// Accepts unknown options and words; unread() returns them.
  void leave_unknown() const;
  [[nodiscard]] std::vector<std::string> unread() const;

 private:
  CLI::App* app_;
};

/// Description of a command.
struct CommandSpec {
  /// Action run after the command line is parsed; returns an exit code.
  using Action = std::function<int()>;

  const char* name;
  int order;            // sort key in the help text
  const char* summary;  // "" hides it from the list of commands
  /// Adds options to the command's parser; returns its action.
  Action (*setup)(Parser app);
  /// Parses the words after the command itself, if they are another program's command line; null:
  /// the parser does. A first word -h or --help still prints help.
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

/// Returns all commands of this program, in the order of the help text.
std::vector<const Command*> commands();

/// Returns the words after "--" on the command line.
const std::vector<std::string>& words_behind();

/// Returns completions of the last of `words`, the command line up to the cursor without "rung";
/// the last word may be empty. A final entry ":files" requests completion of file names.
std::vector<std::string> complete(const std::vector<std::string>& words);

/// Runs the program: parses the command line, runs the command, prints errors. Never throws.
int run_program(int argc, const char* const* argv);

}  // namespace rung::workbench
