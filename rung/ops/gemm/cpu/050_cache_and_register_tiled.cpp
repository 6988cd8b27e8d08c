// SPDX-License-Identifier: Apache-2.0
// gemm / cache and register tiled
//
// Idea     cache and register blocking together: a b1 x b2 tile of C stays in the cache and
//          consists of v1 x v2 tiles that stay in registers.
// Changes  against cache_tiled: a sum is loaded and stored once per piece of k, not at every
//          multiplication. Against register_tiled: the operands of a register tile are in the
//          cache.
// Cost     2 m n k operations; from memory, A n / b2 times and B m / b1 times.
// Limits   every valid call. B is not packed: rows a power of two apart map to few cache sets and
//          evict each other. The compiler's vectors are those of the baseline instruction set.
// Source   R. Whaley and J. Dongarra, Automatically Tuned Linear Algebra Software, 1998.
#include <type_traits>

#include "rung/ops/gemm/cpu/detail/textbook.hpp"

namespace rung {
namespace {
using namespace gemm_cpu;

constexpr std::int64_t b1 = 64;
constexpr std::int64_t b2 = 64;
constexpr std::int64_t depth = 128;  // steps of k: pieces of A and B take 32 KiB each (f32) of L2

constexpr int v1 = 4;
constexpr int v2 = 8;
constexpr int v3 = 4;  // steps of k, unrolled

/// Computes sums[r * row + s] += A[i + r, p] * B[p, j + s] for p in [p0, p1) and a full tile.
/// `b_column` is the column stride of B: the constant 1 where the compiler can vectorize. Not
/// inlined, because g++ 12 spills the inlined tile.
template <class In, class Out, class Stride>
[[gnu::noinline]] void add_tile(const Matrices<In, Out>& x, Stride b_column, std::int64_t batch,
                                std::int64_t i, std::int64_t j, std::int64_t p0, std::int64_t p1,
                                Accumulator<In>* sums, std::int64_t row) {
  using Sum = Accumulator<In>;
  Sum tile[v1][v2];
  for (int r = 0; r < v1; ++r) {
    for (int s = 0; s < v2; ++s) tile[r][s] = sums[r * row + s];
  }
  const In* a = &x.a(batch, i, p0);
  const In* b = &x.b(batch, p0, j);
  const auto step = [&] {
    for (int r = 0; r < v1; ++r) {
      const Sum element = static_cast<Sum>(a[r * x.a.strides[1]]);
#pragma GCC unroll 8
      for (int s = 0; s < v2; ++s) tile[r][s] += element * static_cast<Sum>(b[s * b_column]);
    }
    a += x.a.strides[2];
    b += x.b.strides[1];
  };
  std::int64_t p = p0;
  for (; p + v3 <= p1; p += v3) {
#pragma GCC unroll 4
    for (int q = 0; q < v3; ++q) step();
  }
  for (; p < p1; ++p) step();
  for (int r = 0; r < v1; ++r) {
    for (int s = 0; s < v2; ++s) sums[r * row + s] = tile[r][s];
  }
}

template <class In, class Out, class Stride>
void multiply(const Matrices<In, Out>& x, Stride b_column) {
  using Sum = Accumulator<In>;
  Sum sums[b1][b2];
  for (std::int64_t batch = 0; batch < x.batch; ++batch) {
    for (std::int64_t i0 = 0; i0 < x.m; i0 += b1) {
      const std::int64_t i1 = std::min(i0 + b1, x.m);
      for (std::int64_t j0 = 0; j0 < x.n; j0 += b2) {
        const std::int64_t j1 = std::min(j0 + b2, x.n);
        for (auto& row : sums) std::fill(row, row + b2, Sum{0});
        for (std::int64_t p0 = 0; p0 < x.k; p0 += depth) {
          const std::int64_t p1 = std::min(p0 + depth, x.k);
          for (std::int64_t j = j0; j < j1; j += v2) {
            for (std::int64_t i = i0; i < i1; i += v1) {
              Sum* const to = &sums[i - i0][j - j0];
              if (i + v1 <= i1 && j + v2 <= j1) {
                add_tile(x, b_column, batch, i, j, p0, p1, to, b2);
                continue;
              }
              const std::int64_t rows = std::min<std::int64_t>(v1, i1 - i);
              const std::int64_t columns = std::min<std::int64_t>(v2, j1 - j);
              for (std::int64_t r = 0; r < rows; ++r) {
                for (std::int64_t p = p0; p < p1; ++p) {
                  const Sum element = x.a_at(batch, i + r, p);
                  for (std::int64_t s = 0; s < columns; ++s) {
                    to[r * b2 + s] += element * x.b_at(batch, p, j + s);
                  }
                }
              }
            }
          }
        }
        for (std::int64_t i = i0; i < i1; ++i) {
          for (std::int64_t j = j0; j < j1; ++j) x.finish(batch, i, j, sums[i - i0][j - j0]);
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

// Partial tiles are computed element by element.
Work work(const Gemm::Args& args, const Context&) {
  const double k = static_cast<double>(args.k()), batch = static_cast<double>(args.batch());
  const double full =
      static_cast<double>(args.m() / v1 * v1) * static_cast<double>(args.n() / v2 * v2);
  const double outputs = static_cast<double>(args.m()) * static_cast<double>(args.n());
  const bool is_function =
      args.activation != Activation::none && args.activation != Activation::relu;
  return {.operations = batch * 2 * k * std::max(1.0, full),
          .blocks = batch * outputs,
          .steps = (outputs - full) * k / outputs,
          .path = is_function                  ? "function"
                  : size_of(args.a.dtype) == 2 ? "widened"
                                               : ""};
}

const Rung<Gemm> self{{.name = "cache_and_register_tiled",
                       .step = 50,
                       .after = "cache_tiled",
                       .supports = require_wide_types,
                       .work = work,
                       .run = run}};
}  // namespace
}  // namespace rung
