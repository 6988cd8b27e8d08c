// SPDX-License-Identifier: Apache-2.0
// gemm / naive, loops i j k
//
// Idea     the definition: each element of C is the dot product of a row of A and a column of B.
// Changes  baseline.
// Cost     2 m n k operations and as many loads. Adjacent elements of a column of B are one row
//          apart, so each load touches another cache line and soon another page. The additions of
//          an element form one dependency chain.
// Limits   every valid call; 1 to 2 % of the machine's peak when the matrices exceed the caches.
// Source   any textbook.
#include "rung/ops/gemm/cpu/detail/textbook.hpp"

namespace rung {
namespace {
using namespace gemm_cpu;

void run(const Gemm::Args& args, Context&) {
  with_types(args, [](const auto& x) {
    for (std::int64_t batch = 0; batch < x.batch; ++batch) {
      for (std::int64_t i = 0; i < x.m; ++i) {
        for (std::int64_t j = 0; j < x.n; ++j) {
          typename std::decay_t<decltype(x)>::Sum sum = 0;
          for (std::int64_t p = 0; p < x.k; ++p) sum += x.a_at(batch, i, p) * x.b_at(batch, p, j);
          x.finish(batch, i, j, sum);
        }
      }
    }
  });
}

const Rung<Gemm> self{{.name = "naive_ijk",
                       .step = 10,
                       .teaching = true,
                       .supports = require_wide_types,
                       .run = run}};
}  // namespace
}  // namespace rung
