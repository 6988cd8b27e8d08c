// SPDX-License-Identifier: Apache-2.0
// gemm / loop order i k j
//
// Idea     the same multiplications in another order: row i of C is the sum of the rows of B, each
//          scaled by an element of A. The innermost loop runs along a row.
// Changes  against naive_ijk: B and the sums are accessed with unit stride; the additions of a row
//          are independent, so the compiler can vectorize them.
// Cost     2 m n k operations; B is read once per row of A, the sums once per multiplication.
// Limits   every valid call. All of B passes through the caches m times.
// Source   any textbook.
#include "rung/ops/gemm/cpu/detail/textbook.hpp"

namespace rung {
namespace {
using namespace gemm_cpu;

// Columns per chunk: their sums (f32: 8 KiB) stay in the L1 cache.
constexpr std::int64_t chunk = 2048;

template <class In, class Out>
void multiply(const Matrices<In, Out>& x, Accumulator<In>* sums) {
  for (std::int64_t batch = 0; batch < x.batch; ++batch) {
    for (std::int64_t i = 0; i < x.m; ++i) {
      for (std::int64_t first = 0; first < x.n; first += chunk) {
        const std::int64_t columns = std::min(chunk, x.n - first);
        std::fill(sums, sums + columns, Accumulator<In>{0});
        for (std::int64_t p = 0; p < x.k; ++p) {
          const Accumulator<In> element = x.a_at(batch, i, p);
          const In* row = &x.b(batch, p, first);
          if (x.b.strides[2] == 1) {  // unit stride spelled out so that the compiler vectorizes
            for (std::int64_t j = 0; j < columns; ++j) {
              sums[j] += element * static_cast<Accumulator<In>>(row[j]);
            }
          } else {
            for (std::int64_t j = 0; j < columns; ++j) {
              sums[j] += element * static_cast<Accumulator<In>>(row[j * x.b.strides[2]]);
            }
          }
        }
        for (std::int64_t j = 0; j < columns; ++j) x.finish(batch, i, first + j, sums[j]);
      }
    }
  }
}

void run(const Gemm::Args& args, Context& context) {
  void* sums = context.workspace(chunk * sizeof(double));
  with_types(args, [sums]<class In, class Out>(const Matrices<In, Out>& x) {
    multiply(x, static_cast<Accumulator<In>*>(sums));
  });
}

const Rung<Gemm> self{{.name = "loop_order_ikj",
                       .step = 20,
                       .after = "naive_ijk",
                       .teaching = true,
                       .supports = require_wide_types,
                       .run = run}};
}  // namespace
}  // namespace rung
