// SPDX-License-Identifier: Apache-2.0
// JSON that this program writes and reads: numbers that were not measured, and damaged files.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace rung::bench {

/// Returns a number as JSON; null for NaN (not measured) and infinity, which JSON lacks.
inline nlohmann::ordered_json json_number(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nullptr;
}

/// Returns a message why `text` is not the output of `command`: the position of the syntax error,
/// or the value that is missing or has the wrong type.
std::string json_fault(const nlohmann::json::exception& error, std::string_view text,
                       std::string_view command);

/// Throws Error(io) with the message of json_fault() unless `text` is JSON.
void expect_json(std::string_view text, std::string_view command);

}  // namespace rung::bench
