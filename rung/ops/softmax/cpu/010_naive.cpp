// SPDX-License-Identifier: Apache-2.0
// softmax / naive
//
// Idea     the definition: the exponential of each element, divided by the sum of them all.
// Changes  nothing yet: this is where the ladder stands.
// Cost     x is read twice, y written once; two exponentials an element.
// Limits   exp overflows above 88.7 in f32, and infinity divided by infinity is NaN; far below 0
//          all powers vanish, and 0 is divided by 0. It therefore looks through x first and takes
//          only rows for which the definition holds as it stands: on purpose the rung that fails.
//          f32, forward, no logarithm.
// Tried    -
// Source   any textbook.
#include "rung/ops/softmax/cpu/detail/scalar.hpp"
#include "rung/ops/softmax/op/value_range.hpp"

namespace rung {
namespace {
using namespace softmax_cpu;

void run(const Softmax::Args& args, Context&) {
  for_each_row(args, [&](auto x, auto, auto y, auto scale) {
    auto sum = scale * 0;
    for (std::int64_t i = 0; i < args.length(); ++i) sum += std::exp(scale * x[i]);
    for (std::int64_t i = 0; i < args.length(); ++i) y.set(i, std::exp(scale * x[i]) / sum);
  });
}

const Rung<Softmax> self{{.name = "naive",
                          .step = 10,
                          .teaching = true,
                          .supports = softmax_values::supports_naive,
                          .run = run}};

}  // namespace
}  // namespace rung
