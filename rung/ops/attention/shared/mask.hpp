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

/// All bounds are monotonic: adjacent queries together see the keys from first_key() of the first
/// query to end_key() of the last; likewise for adjacent keys and the queries that see them.
template <class Index>
struct KeyMask {
  Index queries, length;  // length: keys of the batch element
  bool causal;
  Index window;  // keeps a query's last `window` keys of the causal mask; 0: all

  /// Query i sees keys [first_key(i), end_key(i)).
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE Index first_key(Index i) const {
    if (window == 0) return 0;
    return clamped(static_cast<Index>(i + 1 + length - queries - window), Index{0}, length);
  }
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE Index end_key(Index i) const {
    if (!causal) return length;
    return clamped(static_cast<Index>(i + 1 + length - queries), Index{0}, length);
  }

  /// Returns the key that the causal mask aligns with query i, its last one; may be out of range.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE Index diagonal(Index i) const {
    return i + length - queries;
  }

  /// Queries [first_query(j), end_query(j)) see key j. The range of a key that none sees is empty.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE Index first_query(Index j) const {
    if (j >= length) return queries;
    if (!causal) return 0;
    return clamped(static_cast<Index>(j + queries - length), Index{0}, queries);
  }
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE Index end_query(Index j) const {
    if (j >= length || window == 0) return queries;
    return clamped(static_cast<Index>(j + queries - length + window), Index{0}, queries);
  }

  /// Returns whether query i sees key j.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE bool sees(Index i, Index j) const {
    return j >= first_key(i) && j < end_key(i);
  }
  /// Returns whether any query sees key j.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE bool is_seen(Index j) const {
    return first_query(j) < end_query(j);
  }
};

/// Returns the window as kernels get it: 0 (none) if `window` covers all keys.
inline std::int64_t window_among(std::int64_t window, std::int64_t keys) {
  return window < keys ? window : 0;
}

/// Returns the maximum number of keys that `adjacent` adjacent queries see together.
inline std::int64_t most_visible_keys(std::int64_t adjacent, std::int64_t keys,
                                      std::int64_t window) {
  return window == 0 ? keys : smaller(keys, window + larger(adjacent, std::int64_t{1}) - 1);
}

/// Returns the number of visible pairs of one head whose batch element has all keys.
inline double count_visible_pairs(std::int64_t queries, std::int64_t keys, bool causal,
                                  std::int64_t window) {
  const auto rows = static_cast<double>(queries);
  if (!causal) return rows * static_cast<double>(keys);
  // Only the last min(Sq, Sk) queries see keys: the last one sees Sk, each earlier one a key fewer
  // than the next. The windows hide as many pairs as a causal mask of Sk - window keys has.
  const auto triangle = [&](std::int64_t columns) {
    const double last = static_cast<double>(columns);
    const double seeing = smaller(rows, last);
    return seeing * last - seeing * (seeing - 1) / 2;
  };
  return triangle(keys) - (window == 0 ? 0 : triangle(larger(keys - window, std::int64_t{0})));
}

}  // namespace rung
