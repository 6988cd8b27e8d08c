// SPDX-License-Identifier: Apache-2.0
// Shared by the command-line parser, its help, errors and completion. Only these files include
// CLI11, whose header takes seconds to compile.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rung/workbench/command.hpp"

namespace rung::workbench {

/// Details of an option that CLI11 has no place for.
struct OptionDetails {
  /// Validator: returns "" for an accepted value, else the error.
  std::function<std::string(const std::string&)> check;
  Candidates candidates;
};

/// Details of a command that CLI11 has no place for.
struct CommandDetails {
  std::string purpose;
  std::vector<std::pair<std::string, std::string>> examples;  // command lines and descriptions
  std::vector<std::pair<int, std::string>> exit_codes;
};

OptionDetails& details(const CLI::Option* option);
CommandDetails& details(const CLI::App* app);
/// Clears all details. A new Program may reuse the addresses of options that were destroyed.
void forget_details();

/// The program's parser with all commands.
struct Program {
  Program();
  CLI::App app;
  std::vector<std::pair<const CLI::App*, CommandSpec::Action>> actions;
};

/// Adds --color, which every command takes; CLI11 adds --help itself.
void add_common_options(CLI::App& app);

/// Returns the full name of a command: "rung run gemm".
std::string command_path(const CLI::App* app);
/// Returns the displayed name of an option: "--rungs", or "op" for a positional argument.
std::string shown_name(const CLI::Option& option);
/// Returns the visible subcommands.
std::vector<const CLI::App*> shown_commands(const CLI::App& app);
/// Returns the word for subcommands: "operator" below `rung run`, else "command".
std::string_view kind_of_commands(const CLI::App& app);

std::string help_text(const CLI::App& app);

/// Prints the error of a command line and the accepted alternatives to standard error; returns the
/// exit code.
int report_usage(const CLI::App& program, const CLI::ParseError& error);

}  // namespace rung::workbench
