// SPDX-License-Identifier: Apache-2.0
// Kernels as people call them.
#pragma once

#include <string>

namespace rung::workbench {

/// A demangled kernel without namespaces, result and parameters: "tile<Forward<float>, 16>".
std::string short_name(std::string name);

}  // namespace rung::workbench
