// SPDX-License-Identifier: Apache-2.0
// Sets of bytes, represented by address ranges.
#pragma once

#include <cstdint>

#include "rung/simt/record/footprint.hpp"

namespace rung::cuda {

using simt::record::ByteRange;
using simt::record::ByteRanges;

/// Returns the first byte that is in both sets; 0 if they are disjoint.
std::uintptr_t first_common(const ByteRanges& one, const ByteRanges& other);
/// Removes the bytes of `gone` from `ranges`.
void remove(ByteRanges& ranges, const ByteRanges& gone);
/// Adds one range, which may overlap others.
void insert(ByteRanges& ranges, ByteRange more);
/// Adds all bytes of `more`.
void unite(ByteRanges& ranges, const ByteRanges& more);

}  // namespace rung::cuda
