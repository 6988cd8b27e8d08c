// SPDX-License-Identifier: Apache-2.0
// Maps columns of rewritten lines to columns of the user's lines by finding the same word with the
// most similar context.
#include "rung/emulate/columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

#include "rung/emulate/messages.hpp"
#include "rung/emulate/token.hpp"

namespace rung::emulate {
namespace {

// Several pieces of text may have the same line number.
using Lines = std::map<int, std::vector<std::string>>;

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// Returns the lines of a source with line markers, by file and line number.
std::map<std::string, Lines> read_marked(const std::string& text) {
  std::map<std::string, Lines> files;
  Lines* lines = nullptr;
  int number = 0;
  for (std::string& line : split(text)) {
    const std::size_t quote = line.find('"');
    if (line.starts_with("# ") && quote != std::string::npos) {
      number = std::atoi(line.c_str() + 2);
      lines = &files[line.substr(quote + 1, line.rfind('"') - quote - 1)];
    } else if (lines != nullptr) {
      (*lines)[number++].push_back(std::move(line));
    }
  }
  return files;
}

bool is_blank(char c) { return c == ' ' || c == '\t'; }

/// Returns the number of equal characters from a[i] and b[j] on, in the direction of `step`,
/// skipping blanks.
int agreement(std::string_view a, std::size_t i, std::string_view b, std::size_t j, int step) {
  int count = 0;
  auto at = static_cast<std::ptrdiff_t>(i), there = static_cast<std::ptrdiff_t>(j);
  const auto skip = [step](std::string_view text, std::ptrdiff_t& place) {
    while (place >= 0 && place < std::ssize(text) &&
           is_blank(text[static_cast<std::size_t>(place)]))
      place += step;
    return place >= 0 && place < std::ssize(text);
  };
  while (skip(a, at) && skip(b, there) &&
         a[static_cast<std::size_t>(at)] == b[static_cast<std::size_t>(there)]) {
    ++count;
    at += step;
    there += step;
  }
  return count;
}

/// Returns the text from byte `at` to the end of its word; a single character outside words.
std::string_view word_at(std::string_view line, std::size_t at) {
  std::size_t end = at;
  while (end < line.size() && in_word(line[end])) ++end;
  return line.substr(at, std::max<std::size_t>(end - at, 1));
}

struct ColumnSpan {
  std::size_t at = 0;      // byte offset in the line
  std::size_t length = 1;  // length of the word at `at`
};

/// Returns the position in the user's line that corresponds to byte `at` of the rewritten line;
/// nullopt if there is none.
std::optional<ColumnSpan> span_in(const std::string& line, const std::string& rewritten,
                                  std::size_t at) {
  if (at >= rewritten.size()) return std::nullopt;
  const std::string_view word = word_at(rewritten, at);
  std::optional<ColumnSpan> best;
  int most = 0;
  for (std::size_t i = 0; (i = line.find(word, i)) != std::string::npos; ++i) {
    const bool whole = !in_word(word[0]) || (word_at(line, i).size() == word.size() &&
                                             (i == 0 || !in_word(line[i - 1])));
    if (!whole) continue;
    const int before = i == 0 || at == 0 ? 0 : agreement(rewritten, at - 1, line, i - 1, -1);
    const int score = agreement(rewritten, at, line, i, 1) + before;
    if (score <= most) continue;
    most = score;
    best = ColumnSpan{i, word.size()};
  }
  return best;
}

constexpr std::size_t tab = 8;

/// Returns the first `end` bytes of the line with tabs expanded to blanks, as g++ shows it.
std::string expanded(const std::string& line, std::size_t end) {
  std::string text;
  for (std::size_t i = 0; i < std::min(end, line.size()); ++i) {
    if (line[i] == '\t') {
      text.append(tab - text.size() % tab, ' ');
    } else {
      text += line[i];
    }
  }
  return text;
}

std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

/// Parts of "file:line:column: error: ...".
struct Header {
  std::string file, rest;
  int line = 0;
  std::size_t column = 0;
};
std::optional<Header> read_header(const std::string& text) {
  for (const char* mark : {": error: ", ": warning: ", ": note: ", ": fatal error: "}) {
    const std::size_t end = text.find(mark);
    if (end == std::string::npos) continue;
    const std::size_t second = text.rfind(':', end - 1);
    const std::size_t first = second == std::string::npos || second == 0
                                  ? std::string::npos
                                  : text.rfind(':', second - 1);
    if (first == std::string::npos) continue;
    const int line = std::atoi(text.c_str() + first + 1);
    const int column = std::atoi(text.c_str() + second + 1);
    if (line <= 0 || column <= 0) continue;
    return Header{text.substr(0, first), text.substr(end), line, static_cast<std::size_t>(column)};
  }
  return std::nullopt;
}

/// Returns true for a line of an excerpt: "    4 | text" or "      | ^".
bool is_excerpt(const std::string& line) {
  const std::size_t bar = line.find(" |");
  return bar != std::string::npos && bar > 0 && line.find_first_not_of(" 0123456789") == bar + 1;
}

}  // namespace

std::string in_columns_of_files(const std::string& messages, const std::string& rewritten,
                                bool excerpts) {
  const std::map<std::string, Lines> pieces = read_marked(rewritten);
  std::map<std::string, std::vector<std::string>> files;
  std::string text;
  bool replaced = false;  // the excerpt that follows has been replaced
  for (const std::string& line : split(messages)) {
    if (replaced && is_excerpt(line)) continue;
    replaced = false;
    const std::optional<Header> header = read_header(line);
    const auto file = header.has_value() ? pieces.find(header->file) : pieces.end();
    if (file == pieces.end() || !file->second.contains(header->line)) {
      text += line + "\n";
      continue;
    }
    const auto [known, fresh] = files.try_emplace(header->file);
    if (fresh) known->second = split(read_file(header->file));
    const auto index = static_cast<std::size_t>(header->line - 1);
    if (index >= known->second.size()) {
      text += line + "\n";
      continue;
    }
    const std::string& own = known->second[index];
    std::optional<ColumnSpan> span;
    for (const std::string& piece : file->second.at(header->line)) {
      if (piece == own) span = ColumnSpan{header->column - 1, 1};
      if (!span.has_value()) span = span_in(own, piece, header->column - 1);
    }
    if (!span.has_value()) {  // not in the user's line, such as a word from a macro
      text += fmt::format("{}:{}{}\n", header->file, header->line, header->rest);
      if (excerpts) text += fmt::format("{:5} | {}\n", header->line, expanded(own, own.size()));
      replaced = true;
      continue;
    }
    const std::string before = expanded(own, span->at);
    text +=
        fmt::format("{}:{}:{}{}\n", header->file, header->line, width_of(before) + 1, header->rest);
    if (span->at + 1 == header->column || !excerpts) continue;
    replaced = true;
    text += fmt::format("{:5} | {}\n      | {}^{}\n", header->line, expanded(own, own.size()),
                        std::string(width_of(before), ' '), std::string(span->length - 1, '~'));
  }
  return text;
}

std::string colored(std::string messages) {
  constexpr std::pair<const char*, const char*> colors[] = {
      {": error: ", "01;31"}, {": warning: ", "01;35"}, {": note: ", "01;36"}};
  for (const auto& [word, color] : colors) {
    const std::string_view name(word + 2);
    for (std::size_t at = 0; (at = messages.find(word, at)) != std::string::npos;) {
      const std::string shown = fmt::format(": \033[{}m\033[K{}\033[m\033[K", color, name);
      messages.replace(at, name.size() + 2, shown);
      at += shown.size();
    }
  }
  return messages;
}

}  // namespace rung::emulate
