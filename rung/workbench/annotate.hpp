// SPDX-License-Identifier: Apache-2.0
// Source annotated with counters per line.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace rung::workbench {

/// Returns the listings of all files with counted lines; lines far from any count are left out.
/// `kernels`: JSON of simt::record::to_json. `sources`: the program's own source paths, for names
/// that are not valid UTF-8, which JSON cannot represent.
std::string annotate(const nlohmann::json& kernels, const std::vector<std::string>& sources = {});

}  // namespace rung::workbench
