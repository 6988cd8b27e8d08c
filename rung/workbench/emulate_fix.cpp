// SPDX-License-Identifier: Apache-2.0
// Applies fixes in copies of the sources.
#include "rung/workbench/emulate_fix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>

#include "rung/core/error.hpp"
#include "rung/core/text.hpp"
#include "rung/workbench/files.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {
namespace {

struct TextChange {
  int line = 0;
  std::string kind, from, text;

  [[nodiscard]] bool inserts() const { return from.empty(); }
  /// Sort key: changes are made from the end of the file, so that earlier line numbers stay valid.
  /// Of insertions before one line, the fence must come first in the file and is therefore made
  /// last.
  [[nodiscard]] auto rank() const {
    return std::tuple(-line, inserts(), kind == "fence", from, text);
  }
  bool operator<(const TextChange& other) const { return rank() < other.rank(); }
};

std::size_t line_begin(const std::string& text, int line) {
  std::size_t at = 0;
  for (; line > 1; --line) {
    at = text.find('\n', at);
    if (at == std::string::npos) return text.size();
    ++at;
  }
  return at;
}

/// Returns the indentation for a line inserted before the line at `begin`.
std::string indentation(const std::string& text, std::size_t begin) {
  const std::size_t end = std::min(text.find_first_not_of(" \t", begin), text.size());
  std::string blanks = text.substr(begin, end - begin);
  if (end < text.size() && text[end] == '}') blanks += "  ";  // the end of a body
  return blanks;
}

/// Applies a change; returns false if the text to replace is not found.
bool make(const TextChange& change, std::string& text) {
  const std::size_t begin = line_begin(text, change.line);
  if (change.inserts()) {
    text.insert(begin, indentation(text, begin) + change.text + "\n");
    return true;
  }
  const std::size_t at = text.find(change.from, begin);
  if (at == std::string::npos || at > std::min(text.find('\n', begin), text.size())) return false;
  text.replace(at, change.from.size(), change.text);
  return true;
}

}  // namespace

std::string fixed_path(const std::string& source) {
  std::filesystem::path path(source);
  const std::string extension = path.extension().string();
  return path.replace_extension(".fixed" + extension).string();
}

std::vector<std::string> write_fixed(const nlohmann::ordered_json& findings,
                                     const std::vector<std::string>& sources) {
  std::map<std::string, std::set<TextChange>> files;
  std::vector<std::string> notes;
  std::size_t unmended = 0;
  for (const auto& finding : findings) {
    const auto& fixes = finding.at("fixes");
    unmended += fixes.empty() ? 1 : 0;
    for (const auto& fix : fixes) {
      files[fix.at("file")].insert(
          {fix.at("line"), fix.at("kind"), fix.at("from"), fix.at("text")});
    }
  }
  for (const auto& [file, changes] : files) {
    const std::string path = fixed_path(file);
    const bool is_source = std::any_of(sources.begin(), sources.end(), [&](const auto& one) {
      std::error_code none;
      return std::filesystem::equivalent(one, path, none);
    });
    if (is_source) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("--fix: {} is a source of the program, and would be overwritten",
                              printable(path)));
    }
    std::string text = read_text_file(file);
    std::size_t made = 0;
    for (const TextChange& change : changes) {
      if (make(change, text)) {
        ++made;
        continue;
      }
      notes.push_back(
          fmt::format("the change of {}:{} does not go with the others: run --fix on "
                      "the changed source",
                      printable(file), change.line));
    }
    write_text_file(path, text);
    notes.push_back(fmt::format("wrote {}: {} with {}", printable(path), printable(file),
                                count_of(std::to_string(made), "change")));
  }
  if (unmended != 0) {
    notes.push_back(
        fmt::format("{} no change that a program could make: follow the advice",
                    unmended == 1 ? "1 finding has" : fmt::format("{} findings have", unmended)));
  }
  return notes;
}

}  // namespace rung::workbench
