// SPDX-License-Identifier: Apache-2.0
// Messages for an invalid command line: the error, the probably intended word, and the
// alternatives.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "rung/core/suggestion.hpp"
#include "rung/workbench/cli.hpp"
#include "rung/workbench/selection.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {
namespace {

/// Returns the command whose words were not understood.
const CLI::App* command_at_fault(const CLI::App* app) {
  for (auto below = app->get_subcommands(); !below.empty(); below = app->get_subcommands()) {
    if (!app->remaining().empty()) break;  // "rung --bogus list": an error of the program itself
    app = below.front();
  }
  return app;
}

/// Returns the words of the command line that no option consumed, in their order.
std::vector<std::string> unread(const CLI::App& app) {
  std::vector<std::string> words = app.remaining();
  // CLI11 parses from the end.
  if (words.size() > 1 && words.back().starts_with('-')) std::reverse(words.begin(), words.end());
  return words;
}

std::vector<std::string> spelled_options(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

/// Returns the accepted alternatives.
std::string what_exists(const CLI::App& app) {
  std::string text = fmt::format("{}s:", kind_of_commands(app));
  const std::vector<const CLI::App*> below = shown_commands(app);
  for (const CLI::App* one : below) text += " " + one->get_name();
  if (!below.empty()) return text;
  text = "options:";
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = shown_name(*option);
    text += " " + (option->get_positional() ? "[" + name + "]" : name);
  }
  return text;
}

/// Returns the message for an unknown option; "" if there is none.
std::string unknown_option(const CLI::App& app) {
  for (const std::string& word : unread(app)) {
    if (!word.starts_with('-') || word.size() < 2) continue;
    const std::string name = word.substr(0, word.find('='));
    return fmt::format("unknown option '{}'{}", word, did_you_mean(name, spelled_options(app)));
  }
  return "";
}

/// Returns true if words were given and none of them is a command.
bool lacks_command(const CLI::App& app) {
  return !shown_commands(app).empty() && app.get_subcommands().empty() && !app.remaining().empty();
}

/// Returns true if the command line names an operator that this build leaves out.
bool is_left_out(const CLI::App& app) {
  if (kind_of_commands(app) != "operator" || !lacks_command(app)) return false;
  const std::string name = app.remaining().front();
  const std::vector<LeftOutOperator> left_out = left_out_operators();
  return std::any_of(left_out.begin(), left_out.end(),
                     [&](const LeftOutOperator& one) { return one.name == name; });
}

std::string unknown_command(const CLI::App& app) {
  const std::vector<std::string> words = app.remaining();
  if (words.empty()) return fmt::format("no {} given", kind_of_commands(app));
  if (kind_of_commands(app) == "operator") {
    const std::string why = why_no_operator(words.front());
    return why.substr(0, why.find("; accepted"));
  }
  std::vector<std::string> known;
  for (const CLI::App* one : shown_commands(app)) known.push_back(one->get_name());
  return fmt::format("unknown {} '{}'{}", kind_of_commands(app), words.front(),
                     did_you_mean(words.front(), known));
}

std::string message_of(const CLI::App& app, const CLI::ParseError& error) {
  if (dynamic_cast<const CLI::ValidationError*>(&error) != nullptr) return error.what();
  // Words and options after an unknown command belong to that command.
  if (lacks_command(app) && !app.remaining().front().starts_with('-')) return unknown_command(app);
  // First, because an unknown option often causes leftover or missing words.
  if (std::string unknown = unknown_option(app); !unknown.empty()) return unknown;
  // CLI11 reports an unknown command as an unexpected argument.
  if (!shown_commands(app).empty() && app.get_subcommands().empty()) return unknown_command(app);
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    return fmt::format("one argument too many: '{}'", unread(app).front());
  }
  std::string text = error.what();
  constexpr std::string_view conversion = "Could not convert: ";
  const std::size_t equals = text.find(" = ");
  if (text.starts_with(conversion) && equals != std::string::npos) {
    const std::string name = text.substr(conversion.size(), equals - conversion.size());
    std::string value = text.substr(equals + 3);
    if (const std::size_t comma = value.rfind(','); comma != std::string::npos) {
      value.erase(0, comma + 1);  // if an option is repeated, CLI11 lists the earlier values too
    }
    const CLI::Option* const option = app.get_option_no_throw(name);
    if (option != nullptr && option->get_expected_max() == 0) {
      return fmt::format("{}: '{}' given; accepted: {} alone, it takes no value{}", name, value,
                         name,
                         value == "json" && app.get_option_no_throw("--json") != nullptr
                             ? " (--json FILE writes JSON)"
                             : "");
    }
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    const std::size_t colon = text.find(": ");
    if (text.ends_with(" missing")) return text.substr(0, colon) + ": no value given";
    if (colon != std::string::npos && text.find("At Most") != std::string::npos) {
      return text.substr(0, colon) + ": given more than once";
    }
  }
  return text;
}

}  // namespace

int report_usage(const CLI::App& program, const CLI::ParseError& error) {
  const CLI::App* app = command_at_fault(&program);
  const std::string path = command_path(app);
  // For a known option, CLI11's message states what it accepts.
  const bool is_value = dynamic_cast<const CLI::ValidationError*>(&error) != nullptr ||
                        dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr;
  fmt::print(stderr, "{} {}\n{}see `{} --help`\n", toned(Tone::bad, path + ":", STDERR_FILENO),
             message_of(*app, error),
             is_value ? "" : wrapped(what_exists(*app), terminal_width(STDERR_FILENO)), path);
  return is_left_out(*app) ? exit_not_here : exit_usage;
}

}  // namespace rung::workbench
