// SPDX-License-Identifier: Apache-2.0
// An index as rows and columns, row * width + column, and the condition on each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rung/emulate/runtime/index_access.hpp"

namespace rung::cuda {

/// A coordinate of an index, in [0, extent).
struct IndexTerm {
  TokenRange range;
  std::int64_t extent;
  std::string bound;  // the extent in the source: a parameter, else a number
};

/// Splits an index of an array of `count` elements by the widths in the source.
std::vector<IndexTerm> terms_of(const SourceTree& tree, const simt::record::Finding& finding,
                                const IndexAccess& access, std::int64_t count);

/// Returns conditions on the terms, for an `if`, under which the access is in bounds: both bounds
/// of each coordinate that can exceed either. Returns "" if the source does not suffice, or no
/// condition would exclude the failing thread. `any_thread`: regardless of whether the failing
/// thread is excluded.
std::string condition_of(const SourceTree& tree, const simt::record::Finding& finding,
                         const IndexAccess& access, const WrongIndex& wrong,
                         bool any_thread = false);

}  // namespace rung::cuda
