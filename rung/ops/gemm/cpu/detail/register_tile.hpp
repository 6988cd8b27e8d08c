// SPDX-License-Identifier: Apache-2.0
//
// The register tile of the portable rungs: v1 x v2 sums that the compiler keeps in registers while
// v3 products are added to each. Without -march the compiler has 16 registers of 4 floats: 4 x 8
// sums take half of them, and leave room for a row of B and elements of A.
#pragma once

#include "rung/ops/gemm/cpu/detail/textbook.hpp"

namespace rung::gemm_cpu {

constexpr int v1 = 4;
constexpr int v2 = 8;
constexpr int v3 = 4;

/// sums[i * row + j] += A[i0 + i, p] * B[p, j0 + j] for p in [p0, p1) and a whole tile.
template <class In, class Out>
void add_tile(const Matrices<In, Out>& x, std::int64_t batch, std::int64_t i0, std::int64_t j0,
              std::int64_t p0, std::int64_t p1, Accumulator<In>* sums, std::int64_t row) {
  using Sum = Accumulator<In>;
  Sum tile[v1][v2];
  for (int i = 0; i < v1; ++i) {
    for (int j = 0; j < v2; ++j) tile[i][j] = sums[i * row + j];
  }
  const In* a = &x.a(batch, i0, p0);
  const In* b = &x.b(batch, p0, j0);
  const auto step = [&](auto contiguous) {
    const std::int64_t b_column = contiguous ? 1 : x.b.strides[2];
    for (int i = 0; i < v1; ++i) {
      const Sum element = static_cast<Sum>(a[i * x.a.strides[1]]);
#pragma GCC unroll 8
      for (int j = 0; j < v2; ++j) tile[i][j] += element * static_cast<Sum>(b[j * b_column]);
    }
    a += x.a.strides[2];
    b += x.b.strides[1];
  };
  const auto all = [&](auto contiguous) {
    std::int64_t p = p0;
    for (; p + v3 <= p1; p += v3) {
#pragma GCC unroll 4
      for (int q = 0; q < v3; ++q) step(contiguous);
    }
    for (; p < p1; ++p) step(contiguous);
  };
  if (x.b.strides[2] == 1) {
    all(std::true_type());
  } else {
    all(std::false_type());
  }
  for (int i = 0; i < v1; ++i) {
    for (int j = 0; j < v2; ++j) sums[i * row + j] = tile[i][j];
  }
}

/// The same for a tile that the edge of C cuts off.
template <class In, class Out>
void add_edge(const Matrices<In, Out>& x, std::int64_t batch, std::int64_t i0, std::int64_t i1,
              std::int64_t j0, std::int64_t j1, std::int64_t p0, std::int64_t p1,
              Accumulator<In>* sums, std::int64_t row) {
  for (std::int64_t i = i0; i < i1; ++i) {
    for (std::int64_t p = p0; p < p1; ++p) {
      const Accumulator<In> element = x.a_at(batch, i, p);
      for (std::int64_t j = j0; j < j1; ++j) {
        sums[(i - i0) * row + (j - j0)] += element * x.b_at(batch, p, j);
      }
    }
  }
}

/// Either, for the tile that starts at (i0, j0) and ends at the latest at (i1, j1).
template <class In, class Out>
void add(const Matrices<In, Out>& x, std::int64_t batch, std::int64_t i0, std::int64_t i1,
         std::int64_t j0, std::int64_t j1, std::int64_t p0, std::int64_t p1, Accumulator<In>* sums,
         std::int64_t row) {
  if (p0 == p1) return;
  if (i0 + v1 <= i1 && j0 + v2 <= j1) {
    add_tile(x, batch, i0, j0, p0, p1, sums, row);
  } else {
    add_edge(x, batch, i0, std::min<std::int64_t>(i0 + v1, i1), j0,
             std::min<std::int64_t>(j0 + v2, j1), p0, p1, sums, row);
  }
}

}  // namespace rung::gemm_cpu
