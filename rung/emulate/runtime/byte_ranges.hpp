// SPDX-License-Identifier: Apache-2.0
// Sets of bytes as ranges of addresses.
#pragma once

#include <cstdint>

#include "rung/simt/record/footprint.hpp"

namespace rung::cuda {

using simt::record::ByteRange;
using simt::record::ByteRanges;

/// Returns the first byte in both sets; 0 if they are disjoint.
std::uintptr_t first_common(const ByteRanges& one, const ByteRanges& other);
/// Removes the bytes of `gone`.
void remove(ByteRanges& ranges, const ByteRanges& gone);
/// Adds a range at any position.
void insert(ByteRanges& ranges, ByteRange more);
/// Adds all bytes of `more`.
void unite(ByteRanges& ranges, const ByteRanges& more);

}  // namespace rung::cuda
