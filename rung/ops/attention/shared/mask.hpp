// SPDX-License-Identifier: Apache-2.0
// KeyMask: the visible (query, key) pairs of a batch element, by query or by key. Attention and its
// gradient share it, on hosts and devices.
#pragma once

#include <cstdint>

#include "rung/core/bounds.hpp"
#include "rung/core/export.hpp"

namespace rung {

/// Returns the number of keys of a batch element: its entry of key_lengths, clamped to [0, keys].
RUNG_HD RUNG_ALWAYS_INLINE inline std::int64_t key_length(std::int32_t given, std::int64_t keys) {
  return clamped(std::int64_t{given}, std::int64_t{0}, keys);
}

template <class Index>
struct KeyMask {
  Index queries, length;  // length: keys of the batch element
  bool causal;

  /// Returns how many keys, counted from the first, query i sees. Monotonic in i; causal masks
  /// depend on length - queries.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE Index visible(Index i) const {
    if (!causal) return length;
    return clamped(static_cast<Index>(i + 1 + length - queries), Index{0}, length);
  }
  /// Returns the first query that sees key j, or `queries` if none does. Monotonic in j.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE Index first_query(Index j) const {
    if (j >= length) return queries;
    if (!causal) return 0;
    return clamped(static_cast<Index>(j + queries - length), Index{0}, queries);
  }
};

}  // namespace rung
