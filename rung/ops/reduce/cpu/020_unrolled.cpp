// SPDX-License-Identifier: Apache-2.0
// reduce / unrolled accumulators
//
// Idea     eight variables take up every eighth element each, and are put together at the end.
// Changes  against naive: eight additions are under way at a time instead of one, so that their
//          latency (2 to 4 cycles) no longer counts. A compiler must not do this by itself: it
//          changes the order of the additions, and with it the rounding.
// Cost     an element a load and an addition: one or two elements a cycle.
// Limits   contiguous rows of f32 and f64; no index, no segments. Error up to (n / 8 + 3) u.
// Source   any text on instruction-level parallelism, such as Bryant and O'Hallaron, Computer
//          Systems: A Programmer's Perspective, section 5.9.
#include "rung/ops/reduce/cpu/detail/textbook.hpp"

namespace rung {
namespace {
using namespace reduce_cpu;

constexpr int lanes = 8;

template <class T>
void unrolled(const Reduce::Args& args) {
  const Fold fold = fold_of(args.operation);
  for_each_result<T>(args, [&](const T* x, std::int64_t, std::int64_t count, double& value,
                               double&) {
    // What is left in the other seven is put together by the same operation.
    const auto whole = [&](auto identity, const auto& step, const auto& join) {
      using Sum = decltype(identity);
      Sum total[lanes];
      std::fill_n(total, lanes, identity);
      std::int64_t i = 0;
      for (; i + lanes <= count; i += lanes) {
        for (int lane = 0; lane < lanes; ++lane) total[lane] = step(total[lane], x[i + lane]);
      }
      for (; i < count; ++i) total[0] = step(total[0], x[i]);
      for (int half = lanes / 2; half > 0; half /= 2) {
        for (int lane = 0; lane < half; ++lane) {
          total[lane] = join(total[lane], total[lane + half]);
        }
      }
      value = static_cast<double>(total[0]);
    };
    const auto sum = [](auto a, auto b) { return a + b; };
    const auto product = [](auto a, auto b) { return a * b; };
    const auto extreme = [fold](auto a, auto b) { return displaces(fold, b, a) ? b : a; };
    switch (fold) {
      case Fold::sum:
        return whole(T{0}, sum, sum);
      case Fold::squares:
        return whole(0.0, [](double total, T term) { return total + double{term} * term; }, sum);
      case Fold::product:
        return whole(T{1}, product, product);
      default:
        return whole(identity<T>(fold), extreme, extreme);
    }
  });
}

double estimate(const Reduce::Args& args, const Context&) {
  return Reduce::cost(args).operations / 4e9;
}

void run(const Reduce::Args& args, Context&) {
  visit<float, double>(args.x.dtype, [&]<class T>() { unrolled<T>(args); });
}

const Rung<Reduce> self{{.name = "unrolled",
                         .step = 20,
                         .after = "naive",
                         .teaching = true,
                         .supports = require_contiguous_rows,
                         .estimate = estimate,
                         .run = run}};
}  // namespace
}  // namespace rung
