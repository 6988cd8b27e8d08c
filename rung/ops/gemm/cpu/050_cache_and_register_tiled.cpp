// SPDX-License-Identifier: Apache-2.0
// gemm / cache and register tiled
//
// Idea     both at once: a b1 x b2 tile of C that stays in the cache, made of v1 x v2 tiles that
//          stay in registers.
// Changes  against cache_tiled: a sum is loaded and stored once for each piece of k, not at every
//          multiplication. Against register_tiled: what a register tile reads is in the cache.
// Cost     2 m n k operations; from memory, A n / b2 times and B m / b1 times.
// Limits   every valid call. Rows of a tile of B are where they are in memory: a power of two
//          apart, they compete for few sets of the cache; and the compiler's vectors are the least
//          that any machine has.
// Source   R. Whaley and J. Dongarra, Automatically Tuned Linear Algebra Software, 1998.
#include "rung/ops/gemm/cpu/detail/register_tile.hpp"

namespace rung {
namespace {
using namespace gemm_cpu;

constexpr std::int64_t b1 = 64;
constexpr std::int64_t b2 = 64;
constexpr std::int64_t depth = 128;  // of k: pieces of A and B take 32 KiB each (f32) of L2

template <class In, class Out>
void multiply(const Matrices<In, Out>& x) {
  using Sum = Accumulator<In>;
  Sum sums[b1 * b2];
  for (std::int64_t batch = 0; batch < x.batch; ++batch) {
    for (std::int64_t i0 = 0; i0 < x.m; i0 += b1) {
      const std::int64_t i1 = std::min(i0 + b1, x.m);
      for (std::int64_t j0 = 0; j0 < x.n; j0 += b2) {
        const std::int64_t j1 = std::min(j0 + b2, x.n);
        std::fill(sums, sums + b1 * b2, Sum{0});
        for (std::int64_t p0 = 0; p0 < x.k; p0 += depth) {
          const std::int64_t p1 = std::min(p0 + depth, x.k);
          for (std::int64_t j = j0; j < j1; j += v2) {
            for (std::int64_t i = i0; i < i1; i += v1) {
              add(x, batch, i, i1, j, j1, p0, p1, sums + (i - i0) * b2 + (j - j0), b2);
            }
          }
        }
        for (std::int64_t i = i0; i < i1; ++i) {
          for (std::int64_t j = j0; j < j1; ++j) {
            x.finish(batch, i, j, sums[(i - i0) * b2 + (j - j0)]);
          }
        }
      }
    }
  }
}

void run(const Gemm::Args& args, Context&) {
  with_types(args, [](const auto& x) { multiply(x); });
}

// Full tiles are the compiler's vectors, if it need not convert; what is left of rows and columns
// goes element by element; sums are cleared for each matrix.
double estimate(const Gemm::Args& args, const Context&) {
  constexpr double start = 0.1e-6, a_matrix = 0.2e-6, an_output = 1.5e-9, beside = 2e-9;
  const double in_a_tile = size_of(args.a.dtype) == 2 ? 1.2e-9 : 0.1e-9;
  const double full =
      static_cast<double>(args.m() / v1 * v1) * static_cast<double>(args.n() / v2 * v2);
  const double outputs = static_cast<double>(args.m()) * static_cast<double>(args.n());
  const double a_term = full * in_a_tile + (outputs - full) * beside;
  return start + static_cast<double>(args.batch()) *
                     (a_matrix + outputs * an_output + static_cast<double>(args.k()) * a_term);
}

const Rung<Gemm> self{{.name = "cache_and_register_tiled",
                       .step = 50,
                       .after = "cache_tiled",
                       .supports = require_wide_types,
                       .estimate = estimate,
                       .run = run}};
}  // namespace
}  // namespace rung
