// SPDX-License-Identifier: Apache-2.0
// Finds the lines of the program's sources that are compiled, as the preprocessor left them.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "rung/emulate/runtime/source_tree.hpp"
#include "rung/simt/record.hpp"

namespace rung::cuda {
namespace {
namespace fs = std::filesystem;

using Lines = std::vector<bool>;

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Adds the lines of its files that a preprocessed source holds tokens of.
void add_lines(const std::string& preprocessed, std::map<std::string, Lines>& files) {
  const emulate::TokenStream tokens(preprocessed);
  Lines* lines = nullptr;
  int line = 0;
  bool moved = true;
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (tokens[i].kind == emulate::TokenKind::verbatim) {
      moved = true;
      continue;
    }
    const auto breaks = [](std::string_view part) {
      return static_cast<int>(std::count(part.begin(), part.end(), '\n'));
    };
    if (moved) {
      const emulate::SourceLine place = tokens.line_of(i);
      lines = &files[simt::record::shown_path(place.file)];
      line = place.line;
      moved = false;
    } else {
      line += breaks(tokens[i].space);
    }
    const int last = line + breaks(tokens[i].text);
    if (lines->size() <= static_cast<std::size_t>(last)) lines->resize(last + 1u);
    for (; line < last; ++line) (*lines)[static_cast<std::size_t>(line)] = true;
    (*lines)[static_cast<std::size_t>(line)] = true;
  }
}

/// Objects that `rung emulate --build` has left, with their sources beside them.
std::vector<std::string>& registered() {
  static auto& objects = *new std::vector<std::string>;
  return objects;
}

/// Adds the libraries that were loaded since the last call.
const std::map<std::string, Lines>& compiled_lines() {
  static auto& all = *new std::map<std::string, Lines>;
  static auto& known = *new std::set<std::string>;
  for (const std::string& one : preprocessed_files(false)) {
    if (known.insert(one).second) add_lines(read_file(one), all);
  }
  return all;
}

/// Returns the text with blanks for comments, and for whole lines that are not compiled.
std::string compiled_text(std::string text, const Lines& compiled) {
  enum class State { code, line_comment, comment, string, character } state = State::code;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const char next = i + 1 < text.size() ? text[i + 1] : '\0';
    if (state == State::code) {
      if (c == '/' && next == '/') state = State::line_comment;
      if (c == '/' && next == '*') {
        state = State::comment;
        text[i] = text[i + 1] = ' ';
        ++i;
        continue;
      }
      if (c == '"') state = State::string;
      const bool digits = i > 0 && emulate::in_word(text[i - 1]);
      if (c == '\'' && !digits) state = State::character;
    } else if (state == State::string || state == State::character) {
      if (c == '\\') ++i;
      if (c == (state == State::string ? '"' : '\'') || c == '\n') state = State::code;
    } else if (state == State::line_comment && c == '\n') {
      state = State::code;
    } else if (state == State::comment && c == '*' && next == '/') {
      state = State::code;
      text[i] = text[i + 1] = ' ';
      ++i;
      continue;
    }
    const bool comment = state == State::line_comment || state == State::comment;
    if (comment && c != '\n') text[i] = ' ';
  }
  std::size_t line = 1;
  for (char& c : text) {
    if (c == '\n') {
      ++line;
    } else if (line >= compiled.size() || !compiled[line]) {
      c = ' ';
    }
  }
  return text;
}

}  // namespace

std::vector<std::string> preprocessed_files(bool rewritten) {
  std::vector<std::string> files;
  const char* folder = std::getenv("RUNG_EMULATE_SOURCES");
  std::error_code none;
  if (folder != nullptr && *folder != '\0') {
    for (const auto& one : fs::directory_iterator(folder, none)) {
      const std::string name = one.path().filename().string();
      if (name.ends_with(".ii") && name.ends_with(".rung.ii") == rewritten) {
        files.push_back(one.path());
      }
    }
  }
  for (const std::string& object : registered()) {
    const std::string file = object + (rewritten ? ".rung.ii" : ".ii");
    if (fs::exists(file, none)) files.push_back(file);
  }
  return files;
}

std::string source_text(const std::string& file) {
  return read_file(fs::path(simt::record::start_folder()) / file);
}

const SourceTree* source_tree(const std::string& file) {
  static auto& trees = *new std::map<std::string, std::unique_ptr<SourceTree>>;
  const auto compiled = compiled_lines().find(file);
  if (compiled == compiled_lines().end()) return nullptr;
  std::unique_ptr<SourceTree>& tree = trees[file];
  if (tree == nullptr) {
    tree = std::make_unique<SourceTree>(file, compiled_text(source_text(file), compiled->second));
  }
  return tree.get();
}

}  // namespace rung::cuda

/// Registers such an object; the object calls it when the program begins.
extern "C" __attribute__((visibility("default"))) void rung_emulate_source(const char* object) {
  rung::cuda::registered().emplace_back(object);
}
