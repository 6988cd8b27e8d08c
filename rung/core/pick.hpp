// SPDX-License-Identifier: Apache-2.0
// Pick: which of an operator's implementations a call uses.
#pragma once

#include <string_view>

namespace rung {

/// Choice of a rung: the best one, or one by name. Vendors' libraries are loaded into the process
/// only with `peers`, which the workbench sets; a program calls them itself.
struct Pick {
  std::string_view rung = {};
  bool peers = false;
};
inline constexpr Pick best{};

}  // namespace rung
