// SPDX-License-Identifier: Apache-2.0
// Splits an index row * width + column into its terms, and derives the condition on each term.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rung/emulate/runtime/index_access.hpp"

namespace rung::cuda {

/// A coordinate in an index, with values in [0, extent).
struct IndexTerm {
  TokenRange range;
  std::int64_t extent;
  std::string bound;  // source text of the extent: a parameter, else a number
};

/// Splits the index of an access into coordinates, using the row lengths in the source. `count`:
/// number of elements of the array.
std::vector<IndexTerm> terms_of(const SourceTree& tree, const simt::record::Finding& finding,
                                const IndexAccess& access, std::int64_t count);

/// Returns a condition for an `if` under which the access is in bounds: for each coordinate,
/// comparisons with the bounds that it can exceed. Returns "" if the source does not determine them
/// or, unless `any_thread`, if the failing thread satisfies the condition.
std::string condition_of(const SourceTree& tree, const simt::record::Finding& finding,
                         const IndexAccess& access, const WrongIndex& wrong,
                         bool any_thread = false);

}  // namespace rung::cuda
