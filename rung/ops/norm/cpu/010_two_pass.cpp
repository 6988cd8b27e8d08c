// SPDX-License-Identifier: Apache-2.0
// norm / two pass
//
// Idea     the definition: the mean first, then the mean square of the distances from it, then y.
// Changes  -
// Cost     each row is read three times; one element at a time, wherever it lies.
// Limits   one thread, no vectors. Takes every call. Sums are kept in double (long double for
//          f64), because a chain of n f32 additions would lose log2(n) bits.
// Tried    -
// Source   the definition.
#include <cmath>

#include "rung/ops/norm/cpu/detail/textbook.hpp"

namespace rung {
namespace {

using norm_cpu::Statistics;

template <class T>
void two_pass(const Norm::Args& args) {
  using Sum = std::conditional_t<std::is_same_v<T, double>, long double, double>;
  norm_cpu::Textbook<T, Sum> textbook(args);
  textbook.for_each_row([&](const auto& value, std::int64_t n) {
    Statistics<Sum> result{};
    if (args.kind == NormKind::layer) {
      for (std::int64_t i = 0; i < n; ++i) result.mean += value(i);
      result.mean /= static_cast<Sum>(n);
    }
    Sum squares = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const Sum distance = value(i) - result.mean;
      squares += distance * distance;
    }
    result.rstd = 1 / std::sqrt(squares / static_cast<Sum>(n) + args.epsilon);
    return result;
  });
}

double estimate(const Norm::Args& args, const Context&) {
  return Norm::cost(args).operations / 1e9;  // some 1 Gflop/s
}

void run(const Norm::Args& args, Context&) {
  visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() { two_pass<T>(args); });
}

const Rung<Norm> self{{.name = "two_pass", .step = 10, .estimate = estimate, .run = run}};

}  // namespace
}  // namespace rung
