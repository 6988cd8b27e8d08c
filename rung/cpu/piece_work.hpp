// SPDX-License-Identifier: Apache-2.0
// Work (docs/choice.md) of kernels whose pieces, such as rows or tiles, have a fixed cost in
// addition to that of their elements.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "rung/core/type_path.hpp"
#include "rung/core/work.hpp"

namespace rung::cpu {

/// Returns the work of `pieces` pieces with `elements` elements in total; `path` is the rates key.
inline Work piece_work(Amount pieces, Amount elements, Amount threads, std::string_view path) {
  const double each = elements / std::max(1.0, double{pieces});
  return {.blocks = pieces, .steps = each, .threads = threads, .path = path};
}

}  // namespace rung::cpu
