// SPDX-License-Identifier: Apache-2.0
// An index as rows and columns: row * width + column, and what each of them must fulfil.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rung/emulate/runtime/index_access.hpp"

namespace rung::cuda {

/// One coordinate of an index, which runs from 0 to `extent`, exclusively.
struct IndexTerm {
  TokenRange range;
  std::int64_t extent;
  std::string bound;  // the extent as the source calls it: a parameter, else a number
};

/// Splits an index of an array of `count` elements by the widths that the source multiplies by.
std::vector<IndexTerm> terms_of(const SourceTree& tree, const simt::record::Finding& finding,
                                const IndexAccess& access, std::int64_t count);

/// Returns conditions on the terms, for an `if`, under which the access is one of the array: both
/// ends of each coordinate that can leave at either. Returns "" where the source says too little,
/// or nothing that would keep the thread from its access.
/// `any_thread`: whether or not the thread that went wrong is kept from this access.
std::string condition_of(const SourceTree& tree, const simt::record::Finding& finding,
                         const IndexAccess& access, const WrongIndex& wrong,
                         bool any_thread = false);

}  // namespace rung::cuda
