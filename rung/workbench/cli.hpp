// SPDX-License-Identifier: Apache-2.0
// What the parser of the command line, its help, its errors and its completion share. Only they
// include CLI11, whose header takes seconds to compile.
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
  /// "" for an accepted value, else what is wrong with it.
  std::function<std::string(const std::string&)> check;
  Candidates candidates;
};

/// Details of a command that CLI11 has no place for.
struct CommandDetails {
  std::string purpose;
  std::vector<std::pair<std::string, std::string>> examples;  // and what each does
  std::vector<std::pair<int, std::string>> exit_codes;
};

OptionDetails& details(const CLI::Option* option);
CommandDetails& details(const CLI::App* app);
/// A new program begins: its options may get the addresses of others that are gone.
void forget_details();

/// The program's parser with every command on it.
struct Program {
  Program();
  CLI::App app;
  std::vector<std::pair<const CLI::App*, CommandSpec::Action>> actions;
};

/// Adds what every command takes: --help comes by itself, --color here.
void add_common_options(CLI::App& app);

/// "rung run gemm".
std::string command_path(const CLI::App* app);
/// "--rungs", or "op" for a positional argument.
std::string shown_name(const CLI::Option& option);
/// The commands below one that are shown.
std::vector<const CLI::App*> shown_commands(const CLI::App& app);
/// Returns the word for subcommands: "operator" below `rung run`, else "command".
std::string_view kind_of_commands(const CLI::App& app);

std::string help_text(const CLI::App& app);

/// Says on standard error what is wrong with the command line and what exists; returns the exit
/// code.
int report_usage(const CLI::App& program, const CLI::ParseError& error);

}  // namespace rung::workbench
