// SPDX-License-Identifier: Apache-2.0
// Source with what was counted beside each line.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace rung::workbench {

/// `kernels` as simt::record::to_json writes them. Every file that they have lines in; lines far
/// from any count are left out. `sources`: paths of the program's own, for those whose names are no
/// UTF-8, which JSON cannot hold.
std::string annotate(const nlohmann::json& kernels, const std::vector<std::string>& sources = {});

}  // namespace rung::workbench
