// SPDX-License-Identifier: Apache-2.0
// Sources with the fixes of findings made: rung emulate --fix.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace rung::workbench {

/// Returns "folder/name.fixed.cu" for "folder/name.cu".
std::string fixed_path(const std::string& source);

/// Makes the fixes of all findings, as the JSON of `rung emulate` has them, and writes each changed
/// source beside the original. Returns what to tell, a line each. Throws Error where a file to be
/// written is one of `sources`, or cannot be written.
std::vector<std::string> write_fixed(const nlohmann::ordered_json& findings,
                                     const std::vector<std::string>& sources);

}  // namespace rung::workbench
