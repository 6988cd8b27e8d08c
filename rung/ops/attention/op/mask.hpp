// SPDX-License-Identifier: Apache-2.0
// Mask of attention, on hosts and devices: the number of keys, counted from the first, that a query
// sees.
#pragma once

#include <cstdint>

#include "rung/core/bounds.hpp"
#include "rung/core/export.hpp"

namespace rung {

/// Returns the number of keys of a batch element: its entry of key_lengths, clamped to [0, keys].
RUNG_HD RUNG_ALWAYS_INLINE inline std::int64_t key_length(std::int32_t given, std::int64_t keys) {
  return clamped(std::int64_t{given}, std::int64_t{0}, keys);
}

/// Returns how many of `length` keys query `query` of `queries` sees. Monotonic in `query`; causal
/// masks depend on length - queries, constant within a batch element.
RUNG_HD RUNG_ALWAYS_INLINE inline std::int64_t visible_keys(std::int64_t query,
                                                            std::int64_t queries,
                                                            std::int64_t length, bool causal) {
  if (!causal) return length;
  return clamped(query + 1 + length - queries, std::int64_t{0}, length);
}

}  // namespace rung
