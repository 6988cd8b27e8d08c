// SPDX-License-Identifier: Apache-2.0
// Index as rows and columns, row * width + column, and the condition on each term.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rung/emulate/runtime/index_access.hpp"

namespace rung::cuda {

/// Coordinate of an index, in [0, extent).
struct IndexTerm {
  TokenRange range;
  std::int64_t extent;
  std::string bound;  // the extent in the source: a parameter, else a number
};

/// Splits an index of an array of `count` elements by the widths in the source.
std::vector<IndexTerm> terms_of(const SourceTree& tree, const simt::record::Finding& finding,
                                const IndexAccess& access, std::int64_t count);

/// Returns conditions on the terms, for an `if`, under which the access is in bounds: for each
/// coordinate the bounds that it can exceed. Returns "" if the source does not suffice, or if no
/// condition would exclude the failing thread, unless `any_thread`.
std::string condition_of(const SourceTree& tree, const simt::record::Finding& finding,
                         const IndexAccess& access, const WrongIndex& wrong,
                         bool any_thread = false);

}  // namespace rung::cuda
