// SPDX-License-Identifier: Apache-2.0
// softmax / online, two passes
//
// Idea     Compute maximum and sum in one pass: a larger maximum rescales the running sum, sum <-
//          sum exp(old - new).
// Changes  against safe: two passes over x instead of three, a third fewer reads if x comes from
//          memory.
// Cost     x is read twice, y written once; two exponentials per element, one for log. A new
//          maximum takes one exponential to rescale the sum, but its own term is 1.
// Limits   The loop-carried rescaling prevents auto-vectorization.
// Source   M. Milakov and N. Gimelshein, Online normalizer calculation for softmax, 2018.
#include "rung/ops/softmax/cpu/detail/scalar.hpp"

namespace rung {
namespace {
using namespace softmax_cpu;

template <class X, class Y, class Sum>
void online(X x, Y y, Sum scale, std::int64_t length, bool log) {
  constexpr Sum infinity = std::numeric_limits<Sum>::infinity();
  Sum maximum = -infinity;
  Sum sum = 0;
  for (std::int64_t i = 0; i < length; ++i) {
    const Sum value = x[i];
    if (value > maximum) {
      const Sum first = value == infinity ? std::numeric_limits<Sum>::quiet_NaN() : Sum{1};
      sum = sum * std::exp((maximum - value) * scale) + first;
      maximum = value;
    } else if (value != -infinity) {
      sum += std::exp((value - maximum) * scale);
    }
  }
  const bool masked = maximum == -infinity && !std::isnan(sum);
  const Sum logarithm = std::log(sum);
  for (std::int64_t i = 0; i < length; ++i) {
    const Sum z = (x[i] - maximum) * scale;
    if (masked) {
      y.set(i, log ? -infinity : Sum{0});
    } else {
      y.set(i, log ? z - logarithm : std::exp(z) / sum);
    }
  }
}

void run(const Softmax::Args& args, Context&) {
  for_each_row(args,
               [&](auto x, auto y, auto scale) { online(x, y, scale, args.length(), args.log); });
}

const Rung<Softmax> self{
    {.name = "online", .step = 30, .after = "safe", .teaching = true, .run = run}};

}  // namespace
}  // namespace rung
