// SPDX-License-Identifier: Apache-2.0
// reduce / naive
//
// Idea     the definition: one loop over the terms of each result, one variable that takes them up.
// Changes  nothing yet: this is where the ladder stands.
// Cost     each element is read once, but every addition waits for the one before: 2 to 4 cycles an
//          element, in which memory could deliver ten.
// Limits   every valid call. In f32 the error grows with the number of terms n, up to n u: a sum of
//          2^25 ones in a row stops at 2^24. That is why it is never picked.
// Source   any textbook.
#include "rung/ops/reduce/cpu/detail/textbook.hpp"

namespace rung {
namespace {
using namespace reduce_cpu;

/// Sum is the type of the one variable: the accumulator of x's type, 64 bits for integers, and
/// double for squares, which would overflow.
template <class T, class Sum>
void naive(const Reduce::Args& args) {
  using W = Wide<T>;
  const Fold fold = fold_of(args.operation);
  for_each_result<T>(
      args, [&](const T* x, std::int64_t first, std::int64_t count, W& value, W& rest) {
        auto total = static_cast<Sum>(value);
        for (std::int64_t i = 0; i < count; ++i) {
          const auto term =  // NOLINTNEXTLINE(bugprone-signed-char-misuse): i8 has a sign
              static_cast<Sum>(static_cast<Accumulator<T>>(x[args.terms.offset(first + i)]));
          switch (fold) {
            case Fold::sum:
              total = add(total, term);
              break;
            case Fold::squares:
              total += term * term;
              break;
            case Fold::product:
              total = multiply(total, term);
              break;
            default:
              if (displaces(fold, term, total) || (args.is_arg() && rest < 0)) {
                total = term;
                if (args.is_arg()) rest = static_cast<W>(i);
              }
          }
        }
        value = static_cast<W>(total);
      });
}

void run(const Reduce::Args& args, Context&) {
  with_element_type(args.x.dtype, [&]<class T>() {
    if constexpr (std::is_integral_v<T> || std::is_same_v<T, double>) {
      naive<T, Wide<T>>(args);
    } else if (args.operation == Reduction::norm) {
      naive<T, double>(args);
    } else {
      naive<T, float>(args);
    }
  });
}

double estimate(const Reduce::Args& args, const Context&) {
  return Reduce::cost(args).operations / 1e9;
}

const Rung<Reduce> self{
    {.name = "naive", .step = 10, .teaching = true, .estimate = estimate, .run = run}};
}  // namespace
}  // namespace rung
