// SPDX-License-Identifier: Apache-2.0
// Sets the text that a fix replaces to the exact text of the file: advice uses the source without
// comments, but programs that apply fixes search the file for the text.
#include <map>
#include <string>
#include <string_view>

#include "rung/emulate/runtime/advise.hpp"

namespace rung::cuda {
namespace {

using simt::record::Finding;
using simt::record::Fix;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

std::size_t skip_blanks(std::string_view text, std::size_t at) {
  while (at < text.size() && is_blank(text[at])) ++at;
  return at;
}

/// Skips blanks and comments.
std::size_t skip_gap(std::string_view text, std::size_t at) {
  for (;;) {
    at = skip_blanks(text, at);
    std::size_t end = std::string_view::npos;
    if (text.substr(at, 2) == "//") {
      end = text.find('\n', at);
    } else if (text.substr(at, 2) == "/*") {
      end = text.find("*/", at);
      if (end != std::string_view::npos) end += 2;
    } else {
      return at;
    }
    if (end == std::string_view::npos) return text.size();
    at = end;
  }
}

/// Returns the end of `wanted` in the file's text if it occurs at `at`, ignoring blanks and
/// comments; else npos.
std::size_t match_at(std::string_view text, std::size_t at, std::string_view wanted) {
  std::size_t i = 0;
  while ((i = skip_blanks(wanted, i)) < wanted.size()) {
    if (i != 0) at = is_blank(wanted[i - 1]) || at >= text.size() ? skip_gap(text, at) : at;
    if (at < text.size() && text[at] != wanted[i]) at = skip_gap(text, at);
    if (at >= text.size() || text[at] != wanted[i]) return std::string_view::npos;
    ++at;
    ++i;
  }
  return at;
}

std::size_t line_begin(std::string_view text, int line) {
  std::size_t at = 0;
  for (; line > 1 && at != std::string_view::npos; --line) {
    at = text.find('\n', at);
    if (at != std::string_view::npos) ++at;
  }
  return at;
}

void trim_end(std::string& text) {
  while (!text.empty() && is_blank(text.back())) text.pop_back();
}

/// Removes whole lines that are equal at the end of the two texts.
void leave_out_end(Fix& fix) {
  std::size_t alike = 0;
  while (alike < fix.from.size() && alike < fix.text.size() &&
         fix.from[fix.from.size() - 1 - alike] == fix.text[fix.text.size() - 1 - alike]) {
    ++alike;
  }
  const std::size_t line = fix.from.find('\n', fix.from.size() - alike);
  if (line == std::string::npos || skip_blanks(fix.from, 0) >= line) return;
  const std::size_t rest = fix.from.size() - line;
  fix.from.resize(line);
  fix.text.resize(fix.text.size() - rest);
  trim_end(fix.from);
  trim_end(fix.text);
}

}  // namespace

void spell_fixes(std::vector<Finding>& findings) {
  std::map<std::string, std::string> texts;
  for (Finding& finding : findings) {
    for (Fix& fix : finding.fixes) {
      if (fix.from.empty()) continue;
      trim_end(fix.from);
      trim_end(fix.text);
      leave_out_end(fix);
      const auto [file, fresh] = texts.try_emplace(fix.file);
      if (fresh) file->second = source_text(fix.file);
      const std::string_view text = file->second;
      const std::size_t begin = line_begin(text, fix.line);
      if (begin == std::string_view::npos) continue;
      const std::size_t last = std::min(text.find('\n', begin), text.size());
      for (std::size_t at = begin; at < last; ++at) {
        const std::size_t end = match_at(text, at, fix.from);
        if (end == std::string_view::npos || is_blank(text[at])) continue;
        fix.from = text.substr(at, end - at);
        break;
      }
    }
  }
}

}  // namespace rung::cuda
