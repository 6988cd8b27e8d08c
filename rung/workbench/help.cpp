// SPDX-License-Identifier: Apache-2.0
// rung help: `rung help bench` prints `rung bench --help`.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "rung/core/suggestion.hpp"
#include "rung/workbench/cli.hpp"
#include "rung/workbench/selection.hpp"

namespace rung::workbench {
namespace {

std::vector<std::string> names_below(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* one : shown_commands(app)) names.push_back(one->get_name());
  return names;
}

/// Returns the subcommand of `app` with this name; null: there is none.
const CLI::App* command_below(const CLI::App& app, const std::string& name) {
  const std::vector<std::string> names = names_below(app);
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? nullptr : shown_commands(app)[found - names.begin()];
}

int run(const std::vector<std::string>& words) {
  const Program program;
  const CLI::App* app = &program.app;
  for (const std::string& word : words) {
    const CLI::App* const below = command_below(*app, word);
    if (below == nullptr) {
      const std::vector<std::string> known = names_below(*app);
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("help: no {} '{}'{}; accepted: {}", kind_of_commands(*app), word,
                              did_you_mean(word, known), known.empty() ? "none" : join(known)));
    }
    app = below;
  }
  fmt::print("{}", help_text(*app));
  return exit_good;
}

std::vector<std::string> commands_below(const Completing& completing) {
  const Program program;
  const CLI::App* app = &program.app;
  for (std::size_t i = 1; i < completing.before.size() && app != nullptr; ++i) {
    app = command_below(*app, completing.before[i]);
  }
  return app == nullptr ? std::vector<std::string>() : names_below(*app);
}

CommandSpec::Action setup(Parser app) {
  auto words = std::make_shared<std::vector<std::string>>();
  app.add_option("command", *words, "which; default: the program's own help")
      .completes(commands_below);
  app.example("rung help bench");
  app.example("rung help run gemm");
  app.exit_codes({{exit_good, "good"}, {exit_usage, "there is no such command"}});
  return [words] { return run(*words); };
}

const Command self{{.name = "help",
                    .order = 200,
                    .summary = "the help of a command, as COMMAND --help prints it",
                    .setup = setup}};

}  // namespace
}  // namespace rung::workbench
