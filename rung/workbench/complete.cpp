// SPDX-License-Identifier: Apache-2.0
// Shell completion of commands, options, and the values that each option declares.
#include <algorithm>
#include <memory>
#include <optional>

#include "rung/workbench/cli.hpp"

namespace rung::workbench {
namespace {

constexpr const char* files = ":files";

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

const CLI::Option* find_option(const CLI::App& app, const std::string& word) {
  if (!word.starts_with('-') || word == "-") return nullptr;
  return app.get_option_no_throw(word);
}

/// Rejoins words that Bash has split: "--color=al" arrives as "--color", "=" and "al", and Bash
/// replaces "al" alone.
bool join_cut_words(std::vector<std::string>& words) {
  bool last_was_cut = false;
  for (std::size_t i = 1; i < words.size(); ++i) {
    last_was_cut = false;
    if (words[i] != "=" || !words[i - 1].starts_with("--")) continue;
    words[i - 1] += '=';
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(i));
    if (i < words.size()) {
      words[i - 1] += words[i];
      words.erase(words.begin() + static_cast<std::ptrdiff_t>(i));
    }
    last_was_cut = i == words.size();
    --i;
  }
  return last_was_cut;
}

/// Syntactic position of the word to complete.
struct WordPosition {
  const CLI::App* app;
  const CLI::Option* value_of = nullptr;  // option before the word, if it takes a value
  std::size_t positionals = 0;            // number given before the word
};

WordPosition position_of(const CLI::App& program, const std::vector<std::string>& before) {
  WordPosition position{&program};
  for (const std::string& word : before) {
    if (position.value_of != nullptr) {
      position.value_of = nullptr;
      continue;
    }
    if (const CLI::Option* option = find_option(*position.app, word)) {
      if (takes_value(*option)) position.value_of = option;
    } else if (!word.starts_with('-')) {
      const auto below = shown_commands(*position.app);
      const auto found = std::find_if(below.begin(), below.end(),
                                      [&](const CLI::App* one) { return one->get_name() == word; });
      if (found != below.end()) {
        position = {*found};
      } else {
        ++position.positionals;
      }
    }
  }
  return position;
}

const CLI::Option* positional(const CLI::App& app, std::size_t index) {
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) continue;
    if (index-- == 0 || option->get_items_expected_max() > 1) return option;
  }
  return nullptr;
}

std::vector<std::string> values(const CLI::Option& option, const Completing& completing) {
  // A copy: completing `rung help` creates another Program, which clears the details of this one.
  const Candidates candidates = details(&option).candidates;
  if (candidates) return candidates(completing);
  if (option.get_type_name() == "FILE" || option.get_type_name() == "FOLDER") return {files};
  return {};
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    if (!option->get_lnames().empty()) continue;
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

std::vector<std::string> candidates_at(const WordPosition& position, const Completing& completing) {
  if (position.value_of != nullptr) return values(*position.value_of, completing);
  if (completing.word.starts_with('-')) return option_names(*position.app);
  std::vector<std::string> names;
  for (const CLI::App* one : shown_commands(*position.app)) names.push_back(one->get_name());
  if (!names.empty()) return names;
  if (const CLI::Option* option = positional(*position.app, position.positionals)) {
    return values(*option, completing);
  }
  return position.app->get_allow_extras() ? std::vector<std::string>{files} : names;
}

}  // namespace

std::vector<std::string> complete(const std::vector<std::string>& words) {
  Completing completing{"", words};
  const bool cut = join_cut_words(completing.before);
  std::string word;
  if (!completing.before.empty()) {
    word = completing.before.back();
    completing.before.pop_back();
  }
  const std::vector<std::string>& before = completing.before;
  if (std::find(before.begin(), before.end(), "--") != before.end()) return {files};

  const Program program;
  WordPosition position = position_of(program.app, before);
  std::string head;  // prefix of all candidates, such as "--color="
  if (const std::size_t equals = word.find('=');
      word.starts_with("--") && equals != std::string::npos) {
    position.value_of = find_option(*position.app, word.substr(0, equals));
    if (position.value_of == nullptr) return {};
    if (!cut) head = word.substr(0, equals + 1);
    word.erase(0, equals + 1);
  }
  completing.word = word;
  std::vector<std::string> found;
  bool with_files = false;
  for (const std::string& candidate : candidates_at(position, completing)) {
    if (candidate == files) {
      with_files = true;
    } else if (candidate.starts_with(word)) {
      found.push_back(head + candidate);
    }
  }
  if (with_files) found.emplace_back(files);
  return found;
}

}  // namespace rung::workbench
