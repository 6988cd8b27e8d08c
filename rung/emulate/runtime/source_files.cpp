// SPDX-License-Identifier: Apache-2.0
// Determines which lines of the program's sources preprocessing has kept.
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
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

/// Adds, for each file, the lines that contribute tokens to a preprocessed source.
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

/// Returns section .rung_source of a program or library: the sources embedded in its objects
/// (complete_object() in rung/emulate/compile.cpp). Empty if there is no such section.
std::string embedded_sources(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const auto read = [&](std::uint64_t at, void* to, std::size_t bytes) {
    return static_cast<bool>(file.seekg(static_cast<std::streamoff>(at))
                                 .read(static_cast<char*>(to), static_cast<long>(bytes)));
  };
  ElfW(Ehdr) header;
  if (!read(0, &header, sizeof header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return "";
  }
  std::vector<ElfW(Shdr)> sections(header.e_shnum);
  if (header.e_shstrndx >= sections.size() ||
      !read(header.e_shoff, sections.data(), sections.size() * sizeof sections[0])) {
    return "";
  }
  std::string names(sections[header.e_shstrndx].sh_size, '\0');
  if (!read(sections[header.e_shstrndx].sh_offset, names.data(), names.size())) return "";
  for (const ElfW(Shdr) & one : sections) {
    if (one.sh_name >= names.size() || names.c_str() + one.sh_name != std::string(".rung_source")) {
      continue;
    }
    std::string bytes(one.sh_size, '\0');
    return read(one.sh_offset, bytes.data(), bytes.size()) ? bytes : "";
  }
  return "";
}

/// Texts by unique name: the path of a file, or the path of a library and a number.
struct Texts {
  std::map<std::string, std::string> plain, rewritten;
  std::set<std::string> libraries;  // already searched

  void add_library(const std::string& path) {
    if (!libraries.insert(path).second) return;
    const std::string bytes = embedded_sources(path);
    constexpr std::string_view mark = "rung source ";
    for (std::size_t at = 0; (at = bytes.find(mark, at)) != std::string::npos;) {
      std::istringstream line(bytes.substr(at + mark.size(), 64));
      std::string kind;
      std::size_t size = 0;
      line >> kind >> size;
      const std::size_t begin = bytes.find('\n', at);
      if (begin == std::string::npos) return;
      (kind == "plain" ? plain : rewritten)[path + "#" + std::to_string(at)] =
          bytes.substr(begin + 1, size);
      at = begin + 1 + size;
    }
  }
};

/// Returns the compiled lines, including those of libraries loaded since the last call.
const std::map<std::string, Lines>& compiled_lines() {
  static auto& all = *new std::map<std::string, Lines>;
  static auto& known = *new std::set<std::string>;
  for (const auto& [name, text] : preprocessed_texts(false)) {
    if (known.insert(name).second) add_lines(*text, all);
  }
  return all;
}

/// Returns the text with comments and uncompiled lines replaced by blanks.
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

std::vector<PreprocessedText> preprocessed_texts(bool rewritten) {
  static std::mutex mutex;
  static auto& texts = *new Texts;
  const std::lock_guard lock(mutex);
  const char* folder = std::getenv("RUNG_EMULATE_SOURCES");
  std::error_code none;
  if (folder != nullptr && *folder != '\0') {
    for (const auto& one : fs::directory_iterator(folder, none)) {
      const std::string name = one.path().filename().string();
      if (!name.ends_with(".ii")) continue;
      auto& kind = name.ends_with(".rung.ii") ? texts.rewritten : texts.plain;
      if (kind.count(one.path()) == 0) kind[one.path()] = read_file(one.path());
    }
  }
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void*) {
        const std::string_view name = object->dlpi_name;
        texts.add_library(name.empty() ? "/proc/self/exe" : std::string(name));
        return 0;
      },
      nullptr);
  std::vector<PreprocessedText> all;
  for (const auto& [name, text] : rewritten ? texts.rewritten : texts.plain) {
    all.push_back({name, &text});
  }
  return all;
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
