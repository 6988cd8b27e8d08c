// SPDX-License-Identifier: Apache-2.0
// Shortening the names of kernels.
#include "rung/workbench/kernel_name.hpp"

#include <algorithm>
#include <string_view>

namespace rung::workbench {

std::string short_name(std::string name) {
  constexpr std::string_view anonymous = "(anonymous namespace)::";
  for (std::size_t at; (at = name.find(anonymous)) != std::string::npos;) {
    name.erase(at, anonymous.size());
  }
  int depth = 0;  // within <>, where parentheses are casts
  for (std::size_t i = 0; i < name.size(); ++i) {
    depth += name[i] == '<' ? 1 : name[i] == '>' ? -1 : 0;
    if (name[i] == '(' && depth == 0) name.erase(i);
  }
  const std::string_view head = std::string_view(name).substr(0, name.find('<'));
  const std::size_t blank = head.rfind(' ');
  const std::size_t scope = head.rfind("::");
  std::size_t begin = blank == std::string_view::npos ? 0 : blank + 1;
  if (scope != std::string_view::npos) begin = std::max(begin, scope + 2);
  return name.substr(begin);
}

}  // namespace rung::workbench
