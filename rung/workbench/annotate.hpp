// SPDX-License-Identifier: Apache-2.0
// Source with what was counted beside each line.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace rung::workbench {

/// `kernels` as simt::record::to_json writes them. Every file that they have lines in; lines far
/// from any count are left out.
std::string annotate(const nlohmann::json& kernels);

}  // namespace rung::workbench
