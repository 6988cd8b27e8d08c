// SPDX-License-Identifier: Apache-2.0
// Short kernel names.
#pragma once

#include <string>

namespace rung::workbench {

/// Returns a demangled name without namespaces, result type and parameters: "tile<Forward<float>,
/// 16>".
std::string short_name(std::string name);

}  // namespace rung::workbench
