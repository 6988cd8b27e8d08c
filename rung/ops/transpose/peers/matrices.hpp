// SPDX-License-Identifier: Apache-2.0
// Arguments of transpose's CPU peers, which transpose one matrix with contiguous rows into another.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rung/ops/transpose/op/transpose.hpp"

namespace rung::transpose_peer {

struct Matrix {
  const std::byte* x;
  std::byte* y;
  std::int64_t rows, columns;  // extents of x
  std::int64_t x_row, y_row;   // elements between row starts; at least a row's length
};

/// Returns the first matrix, with row strides as libraries require: at least a row's length, even
/// for a single row.
inline Matrix first_matrix(const Transpose::Args& args, const Transpose::Moves& m) {
  return {static_cast<const std::byte*>(args.x.data),
          static_cast<std::byte*>(args.y.data),
          m.rows,
          m.columns,
          m.rows > 1 ? m.x_row : m.columns,
          m.columns > 1 ? m.y_row : m.rows};
}

inline Support supports_matrices(const Transpose::Args& args) {
  if (args.moves.empty()) return supported;
  const Transpose::Moves& m = args.moves;
  if (!m.dense()) return unsupported("the library transposes matrices with contiguous rows");
  const Matrix matrix = first_matrix(args, m);
  if (matrix.x_row < m.columns || matrix.y_row < m.rows) {
    return unsupported("the library takes no rows that overlap or run backwards");
  }
  return supported;
}

/// Calls one(matrix) for each matrix of the batch.
template <class One>
void for_each_matrix(const Transpose::Args& args, One&& one) {
  if (args.moves.empty()) return;
  const Transpose::Moves& m = args.moves;
  const Matrix first = first_matrix(args, m);
  for (std::int64_t i = 0; i < m.matrices(); ++i) {
    Matrix matrix = first;
    matrix.x += m.batch.offset<1>(i) * args.moves.element_bytes;
    matrix.y += m.batch.offset<0>(i) * args.moves.element_bytes;
    one(matrix);
  }
}

}  // namespace rung::transpose_peer
