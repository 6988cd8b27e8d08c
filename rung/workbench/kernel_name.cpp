// SPDX-License-Identifier: Apache-2.0
// Shortens kernel names.
#include "rung/workbench/kernel_name.hpp"

#include <cctype>
#include <string_view>

namespace rung::workbench {

std::string short_name(std::string name) {
  constexpr std::string_view anonymous = "(anonymous namespace)::";
  for (std::size_t at; (at = name.find(anonymous)) != std::string::npos;) {
    name.erase(at, anonymous.size());
  }
  for (std::size_t end; (end = name.find("::")) != std::string::npos;) {
    std::size_t begin = end;
    const auto in_word = [](char c) {
      const auto byte = static_cast<unsigned char>(c);
      return std::isalnum(byte) != 0 || c == '_' || byte >= 0x80;  // non-ASCII letters
    };
    while (begin > 0 && in_word(name[begin - 1])) --begin;
    name.erase(begin, end + 2 - begin);
  }
  int depth = 0;  // nesting of <>, where parentheses are casts
  for (std::size_t i = 0; i < name.size(); ++i) {
    depth += name[i] == '<' ? 1 : name[i] == '>' ? -1 : 0;
    if (name[i] == '(' && depth == 0) name.erase(i);
  }
  const std::size_t result = std::string_view(name).substr(0, name.find('<')).rfind(' ');
  return result == std::string::npos ? name : name.substr(result + 1);
}

}  // namespace rung::workbench
