// SPDX-License-Identifier: Apache-2.0
// JSON that this program writes and reads again: numbers that were not measured, and files that
// somebody has damaged.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace rung::bench {

/// Returns null for a number that was not measured (NaN, which JSON does not have) or infinite.
inline nlohmann::ordered_json json_number(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nullptr;
}

/// Says in plain words why `text` is not what `command` writes: where it stops being JSON, or which
/// value is missing or of another kind.
std::string json_fault(const nlohmann::json::exception& error, std::string_view text,
                       std::string_view command);

/// Throws Error(io) that says so unless `text` is JSON.
void expect_json(std::string_view text, std::string_view command);

}  // namespace rung::bench
