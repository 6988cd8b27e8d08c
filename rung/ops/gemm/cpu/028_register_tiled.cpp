// SPDX-License-Identifier: Apache-2.0
// gemm / register tiled
//
// Idea     a register tile: the sums of v1 x v2 = 4 x 8 elements of C stay in registers. A loaded
//          element of A is used for 8 columns, a loaded element of B for 4 rows.
// Changes  against loop_order_ikj: 32 multiply-adds need 12 loads instead of 64 and no store, and
//          the sums are independent; v3 = 4 steps of k are unrolled.
// Cost     2 m n k operations; each element of A is loaded n / v2 times, of B m / v1 times.
// Limits   every valid call. All of B still passes through the caches once per v1 rows.
// Source   any text on register blocking; K. Yotov et al., 2005.
#include <type_traits>

#include "rung/ops/gemm/cpu/detail/textbook.hpp"

namespace rung::gemm_cpu {

// Without -march the compiler has 16 registers of 4 floats: 4 x 8 sums take half of them and leave
// room for a row of B and elements of A.
constexpr int v1 = 4;
constexpr int v2 = 8;
constexpr int v3 = 4;

/// Computes sums[i * row + j] += A[i0 + i, p] * B[p, j0 + j] for p in [p0, p1) and a full tile.
/// With internal linkage, g++ 12 clones it for its call site, and the clone is 1.5 times as slow.
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

/// Computes the same sums for a partial tile at the edge of C.
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

/// Dispatches to add_tile or add_edge for the tile at (i0, j0), clipped to (i1, j1).
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

namespace rung {
namespace {
using namespace gemm_cpu;

template <class In, class Out>
void multiply(const Matrices<In, Out>& x) {
  for (std::int64_t batch = 0; batch < x.batch; ++batch) {
    for (std::int64_t i = 0; i < x.m; i += v1) {
      for (std::int64_t j = 0; j < x.n; j += v2) {
        Accumulator<In> sums[v1 * v2] = {};
        add(x, batch, i, x.m, j, x.n, 0, x.k, sums, v2);
        for (std::int64_t r = i; r < std::min(i + v1, x.m); ++r) {
          for (std::int64_t s = j; s < std::min(j + v2, x.n); ++s) {
            x.finish(batch, r, s, sums[(r - i) * v2 + (s - j)]);
          }
        }
      }
    }
  }
}

void run(const Gemm::Args& args, Context&) {
  with_types(args, [](const auto& x) { multiply(x); });
}

const Rung<Gemm> self{{.name = "register_tiled",
                       .step = 28,
                       .after = "loop_order_ikj",
                       .teaching = true,
                       .supports = require_wide_types,
                       .run = run}};
}  // namespace
}  // namespace rung
