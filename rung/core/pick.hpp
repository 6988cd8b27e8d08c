// SPDX-License-Identifier: Apache-2.0
// Pick: which of an operator's implementations a call uses.
#pragma once

#include <string_view>

namespace rung {

/// Choice of a rung: the best (empty name), or a rung by name. Vendors' libraries are loaded only
/// with `peers`, which the workbench sets.
struct Pick {
  std::string_view rung = {};
  bool peers = false;
};
inline constexpr Pick best{};

}  // namespace rung
