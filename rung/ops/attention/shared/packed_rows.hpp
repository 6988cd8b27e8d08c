// SPDX-License-Identifier: Apache-2.0
// Rows of batch elements that a tensor holds one after another instead of on an axis. Attention and
// its gradient share them, on hosts and devices.
#pragma once

#include <cstdint>

#include "rung/core/bounds.hpp"
#include "rung/core/export.hpp"
#include "rung/core/tensor_ref.hpp"
#include "rung/core/view.hpp"

namespace rung {

/// Rows [first, first + count).
struct RowRange {
  std::int64_t first, count;
};

/// Returns the rows of a batch element: those between its offset and the next, clamped to `total`
/// rows; without offsets all rows of its index of the batch axis.
RUNG_HD RUNG_ALWAYS_INLINE inline RowRange packed_rows(const View<const std::int32_t, 1>& offsets,
                                                       std::int64_t b, std::int64_t total) {
  if (offsets.data == nullptr) return {0, total};
  const std::int64_t first = clamped(std::int64_t{offsets(b)}, std::int64_t{0}, total);
  const std::int64_t end = clamped(std::int64_t{offsets(b + 1)}, first, total);
  return {first, end - first};
}

/// Returns a batch element's part of a tensor of batch x heads x rows x columns, or, if the rows
/// are packed, of 1 x heads x all rows x columns.
template <class T>
RUNG_HD RUNG_ALWAYS_INLINE inline View<T, 3> element_of(const View<T, 4>& tensor,
                                                        const View<const std::int32_t, 1>& offsets,
                                                        std::int64_t b) {
  if (offsets.data == nullptr) return tensor.at(b);
  const RowRange rows = packed_rows(offsets, b, tensor.shape[2]);
  View<T, 3> element = tensor.at(0);
  element.data += rows.first * element.strides[1];
  element.shape[1] = rows.count;
  return element;
}

/// Returns the last batch element whose start is at most `number`; start(b) must not fall as b
/// rises, and is not called for element 0.
template <class Start>
RUNG_HD RUNG_ALWAYS_INLINE inline std::int64_t element_from(
    const View<const std::int32_t, 1>& offsets, std::int64_t number, const Start& start) {
  std::int64_t element = 0;
  std::int64_t end = offsets.shape[0] - 1;  // the element is in [element, end)
  while (end - element > 1) {
    const std::int64_t middle = (element + end) / 2;
    (start(middle) <= number ? element : end) = middle;
  }
  return element;
}

/// A row of a tensor: row `row` of a batch element. May be outside the element if the row belongs
/// to none.
struct PackedPosition {
  std::int64_t element, row;
};

/// Returns the position of one of `total` rows, at index `batch` of the first axis; there is a
/// batch element.
RUNG_HD RUNG_ALWAYS_INLINE inline PackedPosition packed_position(
    const View<const std::int32_t, 1>& offsets, std::int64_t batch, std::int64_t row,
    std::int64_t total) {
  if (offsets.data == nullptr) return {batch, row};
  const auto start = [&](std::int64_t b) { return packed_rows(offsets, b, total).first; };
  const std::int64_t element = element_from(offsets, row, start);
  return {element, row - start(element)};
}

/// A tile of rows of a batch element, which starts at row `first`.
struct RowTileAt {
  std::int64_t element, first;
};

/// Returns the number of tiles of `rows` rows in all batch elements; if the rows are packed, an
/// upper bound that needs no offset.
RUNG_HD RUNG_ALWAYS_INLINE inline std::int64_t count_row_tiles(bool packed, std::int64_t batch,
                                                               std::int64_t total,
                                                               std::int64_t rows) {
  if (batch == 0) return 0;
  return packed ? total / rows + batch : (total + rows - 1) / rows * batch;
}

/// Returns tile `number` of those. In packed rows the tiles of element b start at number
/// offsets[b] / rows + b, which leaves room for its last, partial one; a tile that starts past the
/// element's rows is empty.
RUNG_HD RUNG_ALWAYS_INLINE inline RowTileAt row_tile_at(const View<const std::int32_t, 1>& offsets,
                                                        std::int64_t total, std::int64_t rows,
                                                        std::int64_t number) {
  if (offsets.data == nullptr) {
    const std::int64_t tiles = (total + rows - 1) / rows;
    return {number / tiles, number % tiles * rows};
  }
  const auto start = [&](std::int64_t b) {
    return packed_rows(offsets, b, total).first / rows + b;
  };
  const std::int64_t element = element_from(offsets, number, start);
  const std::int64_t tile = number - start(element);
  return {element, tile < 0 ? total : tile * rows};  // rows before the first element have none
}

// --- on the host ---------------------------------------------------------------------------------

/// Returns a view of an optional list of numbers, without data if it is not given.
inline View<const std::int32_t, 1> numbers_of(const ConstTensorRef& tensor) {
  return tensor.data == nullptr ? View<const std::int32_t, 1>{}
                                : tensor.view<const std::int32_t, 1>();
}

}  // namespace rung
