// SPDX-License-Identifier: Apache-2.0
// gemm / register tiled
//
// Idea     a register tile: v1 x v2 = 4 x 8 elements of C at once, their sums in registers. An
//          element of A is used for 8 columns, one of B for 4 rows.
// Changes  against loop_order_ikj: 12 loads for 32 multiply-adds instead of 64, no store at all,
//          and independent sums; v3 = 4 steps of k are unrolled.
// Cost     2 m n k operations; each element of A is loaded n / v2 times, of B m / v1 times.
// Limits   every valid call. All of B still passes through the caches for each v1 rows.
// Source   any text on register blocking; K. Yotov et al., 2005.
#include "rung/ops/gemm/cpu/detail/register_tile.hpp"

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
