// SPDX-License-Identifier: Apache-2.0
// The epilogue of a matrix product: computes C = act(alpha sum + beta C + bias) + residual from the
// sums.
//
// A product P describes C, such as gemm's Product: types Out and Sum; views c, bias and residual of
// matrices x rows x columns (no data: absent); alpha, beta, activation; m(), n().
//
//   finish(p, matrix, row, column, sum);           // a thread writes one element
//   finish_tile<4>(p, matrix, sums, row, column);  // a thread writes its tile, four at a time
#pragma once

#include <cstdint>
#include <type_traits>

#include "rung/device/activate.hpp"
#include "rung/device/load.hpp"

namespace rung::inline RUNG_TARGET {

/// Returns activation(value). Unsigned sums represent signed ones modulo 2^32 and support relu
/// only.
template <class Out, class Sum>
__device__ Sum activated(Activation activation, Sum value) {
  if constexpr (std::is_unsigned_v<Sum>) {
    return activation == Activation::relu && static_cast<std::int32_t>(value) < 0 ? 0 : value;
  } else {
    return activate<Out>(activation, value);
  }
}

/// Returns whether the epilogue is C = alpha sum, without beta, bias, residual and activation.
template <class P>
__device__ bool is_plain(const P& p) {
  return p.beta == 0 && p.bias.data == nullptr && p.residual.data == nullptr &&
         p.activation == Activation::none;
}

/// Writes one element of C.
template <class P>
__device__ void finish(const P& p, int batch, std::int64_t row, std::int64_t column,
                       typename P::Sum sum) {
  using Sum = typename P::Sum;
  auto& c = p.c(batch, row, column);
  Sum value = p.alpha * sum;
  if (p.beta != 0) value += p.beta * convert<Sum>(c);  // C is not read if beta = 0: it may be NaN
  if (p.bias.data != nullptr) value += convert<Sum>(p.bias(batch, row, column));
  value = activated<typename P::Out>(p.activation, value);
  if (p.residual.data != nullptr) value += convert<Sum>(p.residual(batch, row, column));
  c = convert<typename P::Out>(value);
}

/// Returns whether one vector store can write Group neighboring columns of C that begin at any
/// multiple of Group. All threads of the grid get the same result.
template <int Group, class P>
__device__ bool takes_wide_stores(const P& p) {
  return p.c.strides[2] == 1 && p.c.strides[1] % Group == 0 && p.c.strides[0] % Group == 0 &&
         is_wide_aligned<typename P::Out, Group>(p.c.data);
}

/// Writes the Rows x Columns sums of one thread. row(i) and column(j) return the row and column of
/// sums[i][j] in C; column() is called for multiples of Group only, and groups of Group columns are
/// adjacent in C.
///
/// The loop over rows is rolled on purpose. Unrolled, every element has its own copy of every
/// activation, tens of thousands of instructions. Rolled, selecting a row of registers costs some
/// hundred moves per thread, less than one step along k.
template <int Group, int Rows, int Columns, class P, class Row, class Column>
__device__ void finish_tile(const P& p, int batch, const typename P::Sum (&sums)[Rows][Columns],
                            Row row, Column column) {
  using Sum = typename P::Sum;
  static_assert(Columns % Group == 0);
  const bool plain = is_plain(p);
  const bool wide = Group > 1 && plain && takes_wide_stores<Group>(p);
#pragma unroll 1
  for (int i = 0; i < Rows; ++i) {
    Sum picked[Columns] = {};
#pragma unroll
    for (int candidate = 0; candidate < Rows; ++candidate) {
      if (candidate == i) {
#pragma unroll
        for (int j = 0; j < Columns; ++j) picked[j] = sums[candidate][j];
      }
    }
    const std::int64_t at_row = row(i);
    if (at_row >= p.m()) continue;
#pragma unroll
    for (int j = 0; j < Columns; j += Group) {
      const std::int64_t at_column = column(j);
      if (wide && at_column + Group <= p.n()) {
        Pack<typename P::Out, Group> values;
#pragma unroll
        for (int lane = 0; lane < Group; ++lane) {
          values[lane] = convert<typename P::Out>(p.alpha * picked[j + lane]);
        }
        store_wide(&p.c(batch, at_row, at_column), values);
        continue;
      }
#pragma unroll
      for (int lane = 0; lane < Group; ++lane) {
        if (at_column + lane < p.n()) finish(p, batch, at_row, at_column + lane, picked[j + lane]);
      }
    }
  }
}

}  // namespace rung::inline RUNG_TARGET
