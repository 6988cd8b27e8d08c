// SPDX-License-Identifier: Apache-2.0
// Numbers of keys and queries per batch element in the check problems of attention and its
// gradient.
#pragma once

#include <cstdint>

#include "rung/core/bounds.hpp"

namespace rung {

/// Returns the key_lengths entry of `lengths` problems: all keys, some, none, too many, or
/// negative.
inline std::int64_t stated_length(std::int64_t batch_element, std::int64_t keys) {
  switch (batch_element % 5) {
    case 0:
      return keys;
    case 1:
      return keys / 3 + 1;
    case 2:
      return 0;
    case 3:
      return keys + 7;
    default:
      return -3;
  }
}

/// Returns the number of rows of a batch element of `packed` problems: all, some, none, or one.
/// `shift` is 1 for keys whose numbers differ from those of the queries.
inline std::int64_t problem_rows(std::int64_t batch_element, std::int64_t rows, int shift) {
  switch ((batch_element + shift) % 4) {
    case 0:
      return rows;
    case 1:
      return rows / 3 + (rows > 0 ? 1 : 0);
    case 2:
      return 0;
    default:
      return rows > 0 ? 1 : 0;
  }
}
/// Returns the number of rows of all batch elements before one.
inline std::int64_t problem_offset(std::int64_t batch_element, std::int64_t rows, int shift) {
  std::int64_t sum = 0;
  for (std::int64_t b = 0; b < batch_element; ++b) sum += problem_rows(b, rows, shift);
  return sum;
}

/// Returns the rows of the largest batch element of the packed problem that has at least `total`
/// rows in all.
inline std::int64_t problem_rows_of(std::int64_t batch, std::int64_t total, int shift) {
  std::int64_t rows = 0;
  while (batch > 0 && problem_offset(batch, rows, shift) < total) {
    // All elements together have at most `batch` times as many rows.
    rows += larger((total - problem_offset(batch, rows, shift)) / batch, std::int64_t{1});
  }
  return rows;
}

}  // namespace rung
