// SPDX-License-Identifier: Apache-2.0
// softmax_backward / naive
//
// Idea     Compute the definition: the sum of dy y along a row (log: of dy), then each element.
// Changes  baseline.
// Cost     y and dy are read twice, dx written once; with log, one call of the C library's exp per
//          element.
// Limits   All valid arguments; one thread, scalar code: the sum is a latency-bound chain of
//          additions.
// Source   any textbook.
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "rung/cpu/strided_row.hpp"
#include "rung/ops/softmax_backward/op/softmax_backward.hpp"

namespace rung {
namespace {

template <class T, class Y>
void naive(const SoftmaxBackward::Args& args) {
  using Sum = Accumulator<T>;
  const auto scale = static_cast<Sum>(args.scale);
  for (std::int64_t row = 0; row < args.count(); ++row) {
    std::int64_t at[3];
    args.rows.offsets(row, at);
    const cpu::StridedRow<const T, Sum> y{static_cast<const T*>(args.y.data) + at[0],
                                          args.rows.steps[0]};
    const cpu::StridedRow<const T, Sum> dy{static_cast<const T*>(args.dy.data) + at[1],
                                           args.rows.steps[1]};
    const cpu::StridedRow<Y, Sum> dx{static_cast<Y*>(args.dx.data) + at[2], args.rows.steps[2]};
    Sum sum = 0;
    for (std::int64_t i = 0; i < args.length(); ++i) sum += args.log ? dy[i] : dy[i] * y[i];
    for (std::int64_t i = 0; i < args.length(); ++i) {
      dx.set(i, args.log ? scale * (dy[i] - std::exp(y[i]) * sum) : scale * ((dy[i] - sum) * y[i]));
    }
  }
}

void run(const SoftmaxBackward::Args& args, Context&) {
  if (args.empty()) return;
  visit<float, double, f16, bf16>(args.y.dtype, [&]<class T>() {
    if constexpr (std::is_same_v<T, float>) {
      if (args.dx.dtype == DType::f16) return naive<T, f16>(args);
      if (args.dx.dtype == DType::bf16) return naive<T, bf16>(args);
    }
    naive<T, T>(args);
  });
}

const Rung<SoftmaxBackward> self{{.name = "naive",
                                  .step = 10,
                                  .teaching = true,
                                  .passes = {.loads = 2, .stores = 1},
                                  .run = run}};

}  // namespace
}  // namespace rung
