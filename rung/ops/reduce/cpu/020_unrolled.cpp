// SPDX-License-Identifier: Apache-2.0
// reduce / unrolled accumulators
//
// Idea     Instruction-level parallelism: four accumulators, each of which sums every fourth
//          element, are combined at the end.
// Changes  Against naive: four additions in flight instead of one hide the latency of 2 to 4
//          cycles. A compiler must not unroll this way by itself, because it would reorder
//          additions and change the rounding.
// Cost     A load and an addition per element: one or two elements per cycle.
// Limits   Sums of contiguous rows of f32 and f64. Error up to (n / 4 + 2) u.
// Source   R. Bryant and D. O'Hallaron, Computer Systems: A Programmer's Perspective, section 5.9.
#include "rung/ops/reduce/cpu/detail/textbook.hpp"

namespace rung {
namespace {

template <class T>
void unrolled(const Reduce::Args& args) {
  const std::int64_t n = args.terms.size();
  for (std::int64_t result = 0; result < args.kept.size(); ++result) {
    std::int64_t at[2];
    args.kept.offsets(result, at);
    const T* x = static_cast<const T*>(args.x.data) + at[0];
    T sum[4] = {};
    std::int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
      sum[0] += x[i];
      sum[1] += x[i + 1];
      sum[2] += x[i + 2];
      sum[3] += x[i + 3];
    }
    for (; i < n; ++i) sum[0] += x[i];
    static_cast<T*>(args.y.data)[at[1]] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  }
}

void run(const Reduce::Args& args, Context&) {
  visit<float, double>(args.x.dtype, [&]<class T>() { unrolled<T>(args); });
}

const Rung<Reduce> self{{.name = "unrolled",
                         .step = 20,
                         .after = "naive",
                         .teaching = true,
                         .supports = reduce_cpu::require_contiguous_float_sums,
                         .run = run}};
}  // namespace
}  // namespace rung
