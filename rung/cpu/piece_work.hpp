// SPDX-License-Identifier: Apache-2.0
// Words for the facts of kernels (docs/choice.md): pieces, such as rows or tiles, that cost
// something beside their elements.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "rung/core/type_path.hpp"
#include "rung/core/work.hpp"

namespace rung::cpu {

/// Returns the facts of so many pieces, which have so many elements in all.
inline Work piece_work(Amount pieces, Amount elements, Amount threads, std::string_view path) {
  const double each = elements / std::max(1.0, double{pieces});
  return {.blocks = pieces, .steps = each, .threads = threads, .path = path};
}

}  // namespace rung::cpu
