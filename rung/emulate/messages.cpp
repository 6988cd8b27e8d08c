// SPDX-License-Identifier: Apache-2.0
// The compiler's messages about rewritten sources, in the user's terms.
#include "rung/emulate/messages.hpp"

#include <fmt/format.h>

#include <set>
#include <sstream>

namespace rung::emulate {
namespace {

constexpr std::string_view error_mark = ": error: ";

/// "float [n]" where a message is about a shared array whose extent is no constant; "": it is not.
std::string variable_extent(const std::string& message) {
  if (message.find("variably modified type") == std::string::npos) return "";
  const std::size_t open = message.find("\u2018"), close = message.find("\u2019");
  if (open == std::string::npos || close == std::string::npos) return "an array";
  return message.substr(open + 3, close - open - 3);
}

}  // namespace

bool speaks_of_rewriting(const std::string& messages) {
  for (const char* ours : {"rung_cuda/launch.h", "rung_type_of_", "rung_shared_"}) {
    if (messages.find(ours) != std::string::npos) return true;
  }
  return false;
}

std::string explained(const std::string& messages, const std::string& plain_messages) {
  std::string text;
  std::set<std::string> told;  // places
  std::istringstream lines(plain_messages);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t mark = line.find(error_mark);
    if (mark == std::string::npos) continue;
    // file:line:column
    const std::string place = line.substr(0, line.rfind(':', mark - 1));
    if (messages.find(place + ":") == std::string::npos) continue;
    const std::string type = variable_extent(line);
    if (type.empty() && speaks_of_rewriting(line)) continue;
    if (!told.insert(place).second) continue;
    text += type.empty() ? line + "\n"
                         : fmt::format(
                               "{}: error: a __shared__ array needs a constant extent, unlike "
                               "{}: use a constant, or extern __shared__ and the third "
                               "argument of the launch\n",
                               place, type);
  }
  return text;
}

}  // namespace rung::emulate
