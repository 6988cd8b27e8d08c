// SPDX-License-Identifier: Apache-2.0
// The numbers that Inputs puts into tensors: a function of a stream and an index, so that any part
// of any tensor can be made, or made again to compare with, without keeping a copy.
// Internal to core.
#pragma once

#include <cstdint>

#include "rung/harness/inputs.hpp"

namespace rung::detail {

/// Writes the `count` values of index first, first + 1, ... as elements of `dtype`.
void generate_values(DType dtype, Values values, std::uint64_t stream, double scale,
                     std::int64_t first, std::int64_t count, void* elements);

/// Generates values by `maker`.
void generate_made(DType dtype, const ValueMaker& maker, std::uint64_t stream, std::int64_t first,
                   std::int64_t count, void* elements);

/// Fills elements first, first + 1, ... with what no computation leaves behind: a signalling NaN of
/// a payload that shows in a dump, for integers 0xa5a5... counted up, which no row of a result
/// is by chance.
void generate_poison(DType dtype, std::int64_t first, std::int64_t count, void* elements);

}  // namespace rung::detail
