// SPDX-License-Identifier: Apache-2.0
// gemm / cache tiled
//
// Idea     cache blocking: C is computed in tiles of b1 x b2 = 64 x 256 elements. The b1 rows of A
//          and b2 columns of B are split along k into pieces that stay in the cache until their
//          last use.
// Changes  against loop_order_ikj: the same innermost loop over a tile; B passes through the caches
//          m / b1 times instead of m times.
// Cost     2 m n k operations; from memory, A n / b2 times and B m / b1 times.
// Limits   every valid call. The sums are loaded and stored at every multiplication.
// Source   M. Lam et al., The Cache Performance and Optimizations of Blocked Algorithms, 1991.
#include "rung/ops/gemm/cpu/detail/textbook.hpp"

namespace rung {
namespace {
using namespace gemm_cpu;

// A row of sums and a row of B (f32: 1 KiB each) stay in L1; the tiles of B and of sums (64 KiB
// each) stay in L2.
constexpr std::int64_t b1 = 64;
constexpr std::int64_t b2 = 256;

template <class In, class Out>
void multiply(const Matrices<In, Out>& x) {
  using Sum = Accumulator<In>;
  Sum sums[b1][b2];
  for (std::int64_t batch = 0; batch < x.batch; ++batch) {
    for (std::int64_t i0 = 0; i0 < x.m; i0 += b1) {
      const std::int64_t rows = std::min(b1, x.m - i0);
      for (std::int64_t j0 = 0; j0 < x.n; j0 += b2) {
        const std::int64_t columns = std::min(b2, x.n - j0);
        for (auto& row : sums) std::fill(row, row + b2, Sum{0});
        for (std::int64_t p0 = 0; p0 < x.k; p0 += b1) {
          const std::int64_t depth = std::min(b1, x.k - p0);
          for (std::int64_t i = 0; i < rows; ++i) {
            for (std::int64_t p = 0; p < depth; ++p) {
              const Sum element = x.a_at(batch, i0 + i, p0 + p);
              const In* row = &x.b(batch, p0 + p, j0);
              if (x.b.strides[2] == 1) {
                for (std::int64_t j = 0; j < columns; ++j) {
                  sums[i][j] += element * static_cast<Sum>(row[j]);
                }
              } else {
                for (std::int64_t j = 0; j < columns; ++j) {
                  sums[i][j] += element * static_cast<Sum>(row[j * x.b.strides[2]]);
                }
              }
            }
          }
        }
        for (std::int64_t i = 0; i < rows; ++i) {
          for (std::int64_t j = 0; j < columns; ++j) x.finish(batch, i0 + i, j0 + j, sums[i][j]);
        }
      }
    }
  }
}

void run(const Gemm::Args& args, Context&) {
  with_types(args, [](const auto& x) { multiply(x); });
}

const Rung<Gemm> self{{.name = "cache_tiled",
                       .step = 40,
                       .after = "loop_order_ikj",
                       .teaching = true,
                       .supports = require_wide_types,
                       .run = run}};
}  // namespace
}  // namespace rung
