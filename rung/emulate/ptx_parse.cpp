// SPDX-License-Identifier: Apache-2.0
// Parser of inline PTX.
#include <cctype>

#include "rung/core/error.hpp"
#include "rung/emulate/ptx.hpp"

namespace rung::emulate {
namespace {

bool in_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%';
}

/// Returns the text without // comments and /* */ comments.
std::string without_comments(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i).starts_with("//")) {
      while (i < text.size() && text[i] != '\n') ++i;
      plain += ' ';
    } else if (text.substr(i).starts_with("/*")) {
      i = std::min(text.find("*/", i), text.size() - 1) + 1;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

Instruction read_instruction(std::string_view text) {
  Instruction one;
  text = trimmed(text);
  // A label is a name followed by a colon.
  std::size_t name = 0;
  while (name < text.size() && in_name(text[name])) ++name;
  if (name > 0 && name < text.size() && text[name] == ':') {
    one.label = text.substr(0, name);
    text = trimmed(text.substr(name + 1));
  }
  if (text.starts_with('@')) {
    std::size_t end = 1;
    while (end < text.size() &&
           (in_name(text[end]) || text[end] == '!' || text[end] == '[' || text[end] == ']')) {
      ++end;
    }
    one.guard = text.substr(1, end - 1);
    text = trimmed(text.substr(end));
  }
  std::size_t end = 0;
  while (end < text.size() && !std::isspace(static_cast<unsigned char>(text[end])) &&
         text[end] != '{' && text[end] != '[') {
    ++end;
  }
  std::string_view words = text.substr(0, end);
  const bool directive = words.starts_with('.');
  if (directive) words.remove_prefix(1);
  for (std::size_t dot = 0; !words.empty(); words.remove_prefix(dot)) {
    dot = std::min(words.find('.'), words.size());
    if (one.opcode.empty()) {
      one.opcode = (directive ? "." : "") + std::string(words.substr(0, dot));
    } else {
      one.modifiers.emplace_back(words.substr(0, dot));
    }
    if (dot < words.size()) ++dot;
  }
  one.operands = split_operands(text.substr(end));
  return one;
}

}  // namespace

std::string Instruction::name() const {
  std::string text = opcode;
  for (const std::string& one : modifiers) text += "." + one;
  return text;
}

bool Instruction::has(std::string_view modifier) const {
  for (const std::string& one : modifiers) {
    if (one == modifier) return true;
  }
  return false;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) {
    text.remove_prefix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) {
    text.remove_suffix(1);
  }
  return text;
}

Words split_operands(std::string_view text) {
  Words parts;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    if (c == '{' || c == '[' || c == '(') ++depth;
    if (c == '}' || c == ']' || c == ')') --depth;
    if (c != ',' || (depth != 0 && i < text.size())) continue;
    const std::string_view part = trimmed(text.substr(begin, i - begin));
    if (!part.empty()) parts.emplace_back(part);
    begin = i + 1;
  }
  return parts;
}

std::vector<Instruction> parse_ptx(std::string_view given) {
  const std::string text = without_comments(given);
  std::vector<Instruction> list;
  std::size_t begin = 0;
  bool blank = true;  // the current instruction has no token so far
  int vectors = 0;    // number of open braces in operands
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ';') {
      if (!blank) list.push_back(read_instruction(std::string_view(text).substr(begin, i - begin)));
      begin = i + 1;
      blank = true;
    } else if (blank && (c == '{' || c == '}')) {
      list.push_back({.opcode = std::string(1, c)});
      begin = i + 1;
    } else if (c == '{') {
      ++vectors;
    } else if (c == '}') {
      --vectors;
    } else if (!std::isspace(static_cast<unsigned char>(c))) {
      blank = false;
    }
  }
  // The last instruction needs no semicolon, as in the assembler.
  if (!blank) list.push_back(read_instruction(std::string_view(text).substr(begin)));
  return list;
}

}  // namespace rung::emulate
