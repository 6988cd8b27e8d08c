// SPDX-License-Identifier: Apache-2.0
// Error messages for files that are not the expected JSON.
#include "rung/bench/json_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "rung/core/error.hpp"
#include "rung/core/text.hpp"

namespace rung::bench {
namespace {

constexpr int no_such_key = 403;

/// Returns a message without the exception's prefix: "[json.exception.type_error.302] type must be
/// ..." becomes "type must be ...".
std::string without_number(std::string_view message) {
  const std::size_t end = message.find("] ");
  return std::string(end == std::string_view::npos ? message : message.substr(end + 2));
}

std::string syntax_fault(std::string_view text, std::size_t byte) {
  const std::size_t end = text.find_last_not_of(" \t\r\n") + 1;
  if (end == 0) return "the file is empty";
  const std::string_view before = text.substr(0, std::min(byte, end));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  if (byte > end) {
    return fmt::format("the file is cut off: it ends within line {}, at byte {}", line, end);
  }
  // The last byte read is the unexpected one.
  const std::string_view wrong = text.substr(byte == 0 ? 0 : byte - 1, 1);
  return fmt::format("line {} is no JSON from byte {} of the file on, '{}'", line, byte,
                     printable(valid_utf8(wrong)));
}

}  // namespace

std::string json_fault(const nlohmann::json::exception& error, std::string_view text,
                       std::string_view command) {
  const std::string written = fmt::format("; accepted: what `{}` writes", command);
  if (const auto* syntax = dynamic_cast<const nlohmann::json::parse_error*>(&error)) {
    return syntax_fault(text, syntax->byte) + written;
  }
  const std::string message = without_number(error.what());
  const std::size_t quote = message.find('\'');
  if (error.id == no_such_key && quote != std::string::npos) {
    return message.substr(quote, message.find('\'', quote + 1) + 1 - quote) + " is missing" +
           written;
  }
  return "a value is of another kind: " + message + written;
}

void expect_json(std::string_view text, std::string_view command) {
  try {
    [[maybe_unused]] const auto parsed = nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::io, json_fault(error, text, command));
  }
}

}  // namespace rung::bench
