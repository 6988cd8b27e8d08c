// SPDX-License-Identifier: Apache-2.0
// gemm / register tiled
//
// Idea     a register tile: v1 x v2 = 4 x 8 elements of C at once, their sums in registers. An
//          element of A is used for 8 columns, one of B for 4 rows.
// Changes  against loop_order_ikj: 12 loads for 32 multiply-adds instead of 64, no store at all,
//          and independent sums; 4 steps of k are unrolled.
// Cost     2 m n k operations; each element of A is loaded n / v2 times, of B m / v1 times.
// Limits   every valid call. All of B still passes through the caches for each v1 rows.
// Source   any text on register blocking; K. Yotov et al., 2005.
#include <type_traits>

#include "rung/ops/gemm/cpu/detail/textbook.hpp"

namespace rung {
namespace {
using namespace gemm_cpu;

// Without -march the compiler has 16 registers of 4 floats: 4 x 8 sums take half of them, and leave
// room for a row of B and elements of A.
constexpr int v1 = 4;
constexpr int v2 = 8;

/// b_column is the stride of a row of B: the constant 1 where the compiler may use vectors.
template <class In, class Out, class Stride>
void multiply(const Matrices<In, Out>& x, Stride b_column) {
  using Sum = Accumulator<In>;
  const std::int64_t a_row = x.a.strides[1], a_column = x.a.strides[2], b_row = x.b.strides[1];
  for (std::int64_t batch = 0; batch < x.batch; ++batch) {
    for (std::int64_t i = 0; i < x.m; i += v1) {
      for (std::int64_t j = 0; j < x.n; j += v2) {
        Sum sums[v1][v2] = {};
        const std::int64_t rows = std::min<std::int64_t>(v1, x.m - i);
        const std::int64_t columns = std::min<std::int64_t>(v2, x.n - j);
        if (rows == v1 && columns == v2 && x.k > 0) {
          const In* a = &x.a(batch, i, 0);
          const In* b = &x.b(batch, 0, j);
#pragma GCC unroll 4
          for (std::int64_t p = 0; p < x.k; ++p, a += a_column, b += b_row) {
            for (int r = 0; r < v1; ++r) {
              const Sum element = static_cast<Sum>(a[r * a_row]);
#pragma GCC unroll 8
              for (int s = 0; s < v2; ++s) {
                sums[r][s] += element * static_cast<Sum>(b[s * b_column]);
              }
            }
          }
        } else {  // the edge of C cuts the tile off
          for (std::int64_t r = 0; r < rows; ++r) {
            for (std::int64_t p = 0; p < x.k; ++p) {
              const Sum element = x.a_at(batch, i + r, p);
              for (std::int64_t s = 0; s < columns; ++s) {
                sums[r][s] += element * x.b_at(batch, p, j + s);
              }
            }
          }
        }
        for (std::int64_t r = 0; r < rows; ++r) {
          for (std::int64_t s = 0; s < columns; ++s) x.finish(batch, i + r, j + s, sums[r][s]);
        }
      }
    }
  }
}

void run(const Gemm::Args& args, Context&) {
  with_types(args, [](const auto& x) {
    if (x.b.strides[2] == 1) {
      multiply(x, std::integral_constant<std::int64_t, 1>());
    } else {
      multiply(x, x.b.strides[2]);
    }
  });
}

const Rung<Gemm> self{{.name = "register_tiled",
                       .step = 28,
                       .after = "loop_order_ikj",
                       .teaching = true,
                       .supports = require_wide_types,
                       .run = run}};
}  // namespace
}  // namespace rung
