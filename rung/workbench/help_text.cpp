// SPDX-License-Identifier: Apache-2.0
// Help of the program and of each command, wrapped to the terminal width.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "rung/workbench/cli.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {
namespace {

constexpr std::size_t indent = 2;
// Maximum width of the left column; a longer name has its own line.
constexpr std::size_t max_name = 30;
constexpr std::size_t max_example = 46;

/// Joins lines to paragraphs and wraps them; lines that begin with a blank are kept.
std::string reflowed(const std::string& text) {
  std::string all;
  std::string paragraph;
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) all += wrapped(paragraph, text_width());
    paragraph.clear();
  };
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.front() == ' ') {
      end_paragraph();
      all += line + '\n';
    } else {
      paragraph += (paragraph.empty() ? "" : " ") + line;
    }
  }
  end_paragraph();
  return all;
}

std::string heading(const std::string& title) { return toned(Tone::strong, title + ":") + "\n"; }

/// A two-column list: names on the left, wrapped descriptions on the right.
class Section {
 public:
  explicit Section(std::string title, std::size_t max_left = max_name)
      : title_(std::move(title)), max_left_(std::min(max_left, text_width() / 2)) {}
  void add(std::string left, std::string right) {
    rows_.emplace_back(std::move(left), std::move(right));
  }
  [[nodiscard]] std::string text() const {
    if (rows_.empty()) return "";
    std::size_t left = 0;
    for (const auto& row : rows_) {
      if (row.first.size() <= max_left_) left = std::max(left, row.first.size());
    }
    const std::size_t column = indent + left + 2;
    std::string text = "\n" + heading(title_);
    for (const auto& [name, meaning] : rows_) {
      std::string head = std::string(indent, ' ') + name;
      if (name.size() > left) {
        text += head + '\n';
        if (meaning.empty()) continue;
        head.clear();
      }
      head.resize(column, ' ');
      text += meaning.empty() ? head.substr(0, head.find_last_not_of(' ') + 1) + '\n'
                              : wrapped(meaning, text_width(), head);
    }
    return text;
  }

 private:
  std::string title_;
  std::size_t max_left_;
  std::vector<std::pair<std::string, std::string>> rows_;
};

bool takes_several(const CLI::Option& option) { return option.get_items_expected_max() > 1; }

/// Returns the left column of an option: "-o, --output FILE".
std::string left_side(const CLI::Option& option) {
  std::string text;
  for (const std::string& name : option.get_snames()) text += (text.empty() ? "-" : ", -") + name;
  for (const std::string& name : option.get_lnames()) text += (text.empty() ? "--" : ", --") + name;
  if (option.get_items_expected_max() > 0) text += " " + option.get_type_name();
  return text;
}

std::string usage(const CLI::App& app) {
  std::string text = command_path(&app);
  std::string optional;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      const std::string name = shown_name(*option) + (takes_several(*option) ? "..." : "");
      text += option->get_required() ? " " + name : " [" + name + "]";
    } else if (option->get_required()) {
      text += " " + left_side(*option).substr(left_side(*option).find("--"));
    } else {
      optional = " [options]";
    }
  }
  if (app.get_allow_extras()) text += " FILE...";
  if (!shown_commands(app).empty()) {
    std::string kind(kind_of_commands(app));
    std::transform(kind.begin(), kind.end(), kind.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    text += " " + kind + " ...";
  }
  const std::string head = toned(Tone::strong, "Usage:") + " ";
  // Wrapped without the escape sequences, which have no width.
  return "\n" + head + wrapped(text + optional, text_width(), "       ").substr(7);
}

}  // namespace

std::vector<const CLI::App*> shown_commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); });
}

std::string_view kind_of_commands(const CLI::App& app) {
  return app.get_name() == "run" ? "operator" : "command";
}

std::string command_path(const CLI::App* app) {
  const std::string above = app->get_parent() != nullptr ? command_path(app->get_parent()) : "";
  return above.empty() ? app->get_name() : above + " " + app->get_name();
}

std::string shown_name(const CLI::Option& option) {
  return option.get_name(option.get_positional());
}

std::string help_text(const CLI::App& app) {
  const CommandDetails& more = details(&app);
  std::string text;
  if (app.get_parent() != nullptr) {
    text = wrapped(fmt::format("{}: {}", command_path(&app), app.get_description()), text_width());
    if (!more.purpose.empty()) text += '\n';
  }
  text += reflowed(more.purpose) + usage(app);

  Section arguments("Arguments");
  Section options("Options");
  std::vector<const CLI::Option*> common;
  const auto add = [](Section& section, const CLI::Option& option) {
    section.add(option.get_positional() ? shown_name(option) : left_side(option),
                option.get_description());
  };
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      add(arguments, *option);
      // A positional argument that also has an option name: `rung amdahl 90% -n 8`.
      const bool is_named = !option->get_snames().empty() || !option->get_lnames().empty();
      if (is_named) options.add(left_side(*option), "the same as " + shown_name(*option));
    } else if (option == app.get_help_ptr() || option->get_group() == "common") {
      common.push_back(option);
    } else {
      add(options, *option);
    }
  }
  for (const CLI::Option* option : common) add(options, *option);
  text += arguments.text();
  std::string kind(kind_of_commands(app));
  Section commands(kind == "operator" ? "Operators" : "Commands");
  for (const CLI::App* one : shown_commands(app)) {
    commands.add(one->get_name(), one->get_description());
  }
  text += commands.text() + options.text();

  Section examples("Examples", max_example);
  for (const auto& [command, comment] : more.examples) examples.add(command, comment);
  text += examples.text();
  Section codes("Exit codes");
  for (const auto& [code, meaning] : more.exit_codes) codes.add(std::to_string(code), meaning);
  text += codes.text();
  if (!app.get_footer().empty()) text += "\n" + reflowed(app.get_footer());
  return text;
}

}  // namespace rung::workbench
