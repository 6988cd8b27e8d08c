// SPDX-License-Identifier: Apache-2.0
// softmax / safe, three passes
//
// Idea     Subtract the row's maximum before the exponential: the largest exponential is then 1,
//          and nothing overflows. Three passes: maximum, sum, results.
// Changes  against naive: correct for every input; one more pass.
// Cost     x is read three times, y written once; two calls of the C library's exp per element.
// Limits   All valid arguments; one thread, scalar code.
// Source   J. Bridle, Training stochastic model recognition algorithms, 1990.
#include "rung/ops/softmax/cpu/detail/scalar.hpp"

namespace rung {
namespace {
using namespace softmax_cpu;

template <class X, class Y, class Sum>
void safe(X x, Y y, Sum scale, std::int64_t length, bool log) {
  constexpr Sum infinity = std::numeric_limits<Sum>::infinity();
  Sum maximum = -infinity;
  // Written so that a NaN, once found, stays.
  for (std::int64_t i = 0; i < length; ++i) {
    if (x[i] > maximum || std::isnan(x[i])) maximum = x[i];
  }
  if (maximum == -infinity) {  // fully masked: -infinity - -infinity would be NaN
    for (std::int64_t i = 0; i < length; ++i) y.set(i, log ? -infinity : Sum{0});
    return;
  }
  Sum sum = 0;
  for (std::int64_t i = 0; i < length; ++i) sum += std::exp((x[i] - maximum) * scale);
  const Sum logarithm = std::log(sum);
  for (std::int64_t i = 0; i < length; ++i) {
    const Sum z = (x[i] - maximum) * scale;
    y.set(i, log ? z - logarithm : std::exp(z) / sum);
  }
}

void run(const Softmax::Args& args, Context&) {
  for_each_row(args,
               [&](auto x, auto y, auto scale) { safe(x, y, scale, args.length(), args.log); });
}

const Rung<Softmax> self{
    {.name = "safe", .step = 20, .after = "naive", .teaching = true, .run = run}};

}  // namespace
}  // namespace rung
