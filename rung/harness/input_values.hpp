// SPDX-License-Identifier: Apache-2.0
// Values of Inputs' tensors: a function of stream and index, so that any part of a tensor can be
// generated, and generated again for a comparison, without a copy. Internal to core.
#pragma once

#include <cstdint>

#include "rung/harness/inputs.hpp"

namespace rung::detail {

/// Generates the values of indices [first, first + count) as elements of `dtype`.
void generate_values(DType dtype, Values values, std::uint64_t stream, double scale,
                     std::int64_t first, std::int64_t count, void* elements);

/// Generates values by `maker`.
void generate_made(DType dtype, const ValueMaker& maker, std::uint64_t stream, std::int64_t first,
                   std::int64_t count, void* elements);

/// Fills elements [first, first + count) with poison, which no computation is likely to produce: a
/// signaling NaN with a recognizable payload; for integers 0xa5a5... plus the index.
void generate_poison(DType dtype, std::int64_t first, std::int64_t count, void* elements);

}  // namespace rung::detail
