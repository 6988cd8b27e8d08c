// SPDX-License-Identifier: Apache-2.0
// The program around the commands: reads the command line, runs one, and turns every error into a
// message that says what is accepted and an exit code.
#include "rung/workbench/command.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace rung::workbench {
namespace {

constexpr const char* introduction =
    "rung: parallel kernels as ladders.\n"
    "\n"
    "Every operator (a matrix product, say) is a ladder: implementations from the textbook loop "
    "to\n"
    "the fastest known, each one a rung in a file of its own. This program lists the rungs, "
    "checks\n"
    "them against a double-precision oracle, and times them beside the vendors' libraries and the\n"
    "limits of this machine.";

constexpr const char* examples =
    "Start here:\n"
    "  rung list gemm                               the ladder of the matrix product\n"
    "  rung check gemm                              is every rung right?\n"
    "  rung bench gemm \"f32 1024x1024x1024\"         how fast is each, and how fast could it be?\n"
    "  rung explain gemm                            what did each step change? counted, no GPU\n"
    "  rung run gemm a.npy b.npy -o c.npy           use it on files that NumPy wrote\n"
    "\n"
    "Exit codes: 0 good, 1 a check failed, 2 wrong usage, 3 not available here.\n"
    "`rung COMMAND --help` tells more about one command.";

/// Head of the list of commands; constinit, so that registration order does not matter.
constinit const Command* first_command = nullptr;

std::vector<std::string> behind;

const CLI::App* deepest_parsed(const CLI::App* app) {
  for (auto below = app->get_subcommands(); !below.empty(); below = app->get_subcommands()) {
    app = below.front();
  }
  return app;
}

std::string command_path(const CLI::App* app) {
  const std::string above = app->get_parent() != nullptr ? command_path(app->get_parent()) : "";
  return above.empty() ? app->get_name() : above + " " + app->get_name();
}

/// What could have been written instead, for a command line that was not understood.
std::string what_exists(const CLI::App& app) {
  std::string text;
  for (const CLI::App* below : app.get_subcommands({})) text += " " + below->get_name();
  if (!text.empty()) {
    return (app.get_name() == "run" ? "operators:" : "commands:") + text;
  }
  for (const CLI::Option* option : app.get_options()) {
    text +=
        " " + (option->get_positional() ? "[" + option->get_name(true) + "]" : option->get_name());
  }
  return "options:" + text;
}

/// The words of the command line that no option took, as they were written.
std::vector<std::string> unread(const CLI::App& app) {
  std::vector<std::string> words = app.remaining();
  // The parser works from the end.
  if (words.size() > 1 && words.back().starts_with("-")) std::reverse(words.begin(), words.end());
  return words;
}

int report_usage(const CLI::App& program, const CLI::ParseError& error) {
  const CLI::App* app = deepest_parsed(&program);
  std::string message = error.what();
  // CLI11 words an unknown command as an unexpected argument.
  const bool misses_command = !app->get_subcommands({}).empty();
  if (misses_command) {
    const std::vector<std::string> rest = app->remaining();
    message = rest.empty()
                  ? "no command given"
                  : fmt::format("unknown {} '{}'",
                                app->get_name() == "run" ? "operator" : "command", rest.front());
  } else if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    message = fmt::format("not understood: {}", fmt::join(unread(*app), " "));
  }
  fmt::print(stderr, "{0}: {1}\n{2}\n`{0} --help` tells more\n", command_path(app), message,
             what_exists(*app));
  return exit_usage;
}

/// A positional argument and an option of one name are taken by CLI11 2.1, and refused by 2.4
/// before anything runs: here, by every version.
CLI::Option* with_own_name(const CLI::App& app, CLI::Option* added) {
  const auto calls_itself = [](const CLI::Option* option, const std::string& name) {
    const std::vector<std::string>& names = option->get_lnames();
    return !name.empty() && std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const CLI::Option* other : app.get_options()) {
    if (other == added) continue;
    if (calls_itself(other, added->get_name(true)) || calls_itself(added, other->get_name(true))) {
      throw std::logic_error("two arguments of one name: " + added->get_name());
    }
  }
  return added;
}

}  // namespace

ExitCode exit_code(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::io:
      return exit_usage;
    case ErrorCode::unsupported:
    case ErrorCode::not_available:
    case ErrorCode::out_of_memory:
      return exit_not_here;
    case ErrorCode::device:
    case ErrorCode::internal:
      break;
  }
  return exit_failed;
}

Option Option::required(bool required) const { return Option(option_->required(required)); }
Option Option::type_name(const std::string& name) const { return Option(option_->type_name(name)); }
Option Option::between(int least, int most) const {
  return Option(option_->check(CLI::Range(least, most)));
}
Option Option::between(double least, double most) const {
  return Option(option_->check(CLI::Range(least, most)));
}
Option Option::positive() const { return Option(option_->check(CLI::PositiveNumber)); }
Option Option::not_negative() const { return Option(option_->check(CLI::NonNegativeNumber)); }
Option Option::one_of(std::vector<std::string> words) const {
  return Option(option_->check(CLI::IsMember(std::move(words))));
}
Option Option::needs(Option other) const { return Option(option_->needs(other.option_)); }
Option Option::word_by_word() const { return Option(option_->allow_extra_args(false)); }
bool Option::given() const { return option_->count() != 0; }

template <class T>
Option Parser::add_option(const std::string& names, T& value, const std::string& help) const {
  return Option(with_own_name(*app_, app_->add_option(names, value, help)));
}
template Option Parser::add_option(const std::string&, std::string&, const std::string&) const;
template Option Parser::add_option(const std::string&, int&, const std::string&) const;
template Option Parser::add_option(const std::string&, double&, const std::string&) const;
template Option Parser::add_option(const std::string&, std::uint64_t&, const std::string&) const;
template Option Parser::add_option(const std::string&, std::vector<std::string>&,
                                   const std::string&) const;
template Option Parser::add_option(const std::string&, std::vector<double>&,
                                   const std::string&) const;
Option Parser::add_flag(const std::string& names, bool& value, const std::string& help) const {
  return Option(with_own_name(*app_, app_->add_flag(names, value, help)));
}
void Parser::footer(const std::string& text) const { app_->footer(text); }
Parser Parser::add_command(const std::string& name, const std::string& summary) const {
  app_->require_subcommand(1);
  return Parser(app_->add_subcommand(name, summary));
}
bool Parser::parsed() const { return app_->parsed(); }
void Parser::leave_unknown() const {
  app_->allow_extras();
  app_->positionals_at_end(false);
}
std::vector<std::string> Parser::unread() const { return app_->remaining(); }

Command::Command(const CommandSpec& described) : spec(described), next_(first_command) {
  first_command = this;
}

std::vector<const Command*> commands() {
  std::vector<const Command*> all;
  for (const Command* one = first_command; one != nullptr; one = one->next_) all.push_back(one);
  std::sort(all.begin(), all.end(),
            [](const Command* a, const Command* b) { return a->spec.order < b->spec.order; });
  return all;
}

const std::vector<std::string>& words_behind() { return behind; }

int run_program(int argc, const char* const* argv) {
  try {
    const char* const* const end = argv + argc;
    const char* const* const dashes =
        std::find_if(argv, end, [](const char* word) { return std::string_view(word) == "--"; });
    behind.assign(std::min(dashes + 1, end), end);
    CLI::App program{introduction, "rung"};
    program.footer(examples);
    program.require_subcommand(1);
    program.get_formatter()->column_width(34);
    std::vector<std::pair<CLI::App*, CommandSpec::Action>> actions;
    for (const Command* command : commands()) {
      CLI::App* app = program.add_subcommand(command->spec.name, command->spec.summary);
      actions.emplace_back(app, command->spec.setup(Parser(app)));
    }
    try {
      program.parse(static_cast<int>(dashes - argv), argv);
    } catch (const CLI::Success& asked_for_help) {
      return program.exit(asked_for_help);
    } catch (const CLI::ParseError& error) {
      return report_usage(program, error);
    }
    for (const auto& [app, action] : actions) {
      if (app->parsed()) return action();
    }
    return exit_usage;
  } catch (const Error& error) {
    fmt::print(stderr, "rung: {}\n", error.what());
    return exit_code(error.code());
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "rung: out of memory\n");
    return exit_not_here;
  } catch (const std::exception& error) {
    fmt::print(stderr, "rung: {}\n", error.what());
    return exit_failed;
  }
}

}  // namespace rung::workbench
