// SPDX-License-Identifier: Apache-2.0
// Which keys a query sees: always the first so many. On hosts and devices.
#pragma once

#include <cstdint>

#include "rung/core/bounds.hpp"
#include "rung/core/export.hpp"

namespace rung {

/// Returns the number of keys of a batch element: its entry of key_lengths, clamped to [0, keys].
RUNG_HD RUNG_ALWAYS_INLINE inline std::int64_t key_length(std::int32_t given, std::int64_t keys) {
  return clamped(std::int64_t{given}, std::int64_t{0}, keys);
}

/// Returns how many of `length` keys query `query` of `queries` sees. The number never falls from
/// one query to the next, and `length - queries` is the same for all queries of a batch element.
RUNG_HD RUNG_ALWAYS_INLINE inline std::int64_t visible_keys(std::int64_t query,
                                                            std::int64_t queries,
                                                            std::int64_t length, bool causal) {
  if (!causal) return length;
  return clamped(query + 1 + length - queries, std::int64_t{0}, length);
}

}  // namespace rung
