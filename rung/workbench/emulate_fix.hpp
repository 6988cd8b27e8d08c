// SPDX-License-Identifier: Apache-2.0
// Applies the fixes of findings to copies of the sources: rung emulate --fix.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace rung::workbench {

/// Returns "folder/name.fixed.cu" for "folder/name.cu".
std::string fixed_path(const std::string& source);

/// Applies the fixes of all findings (JSON of `rung emulate`) and writes each changed source beside
/// the original. Returns messages, one per line. Throws Error if an output file is one of `sources`
/// or cannot be written.
std::vector<std::string> write_fixed(const nlohmann::ordered_json& findings,
                                     const std::vector<std::string>& sources);

}  // namespace rung::workbench
