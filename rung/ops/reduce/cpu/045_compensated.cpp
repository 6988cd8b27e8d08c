// SPDX-License-Identifier: Apache-2.0
// reduce / compensated
//
// Idea     what an addition rounds away can be computed exactly, by five more additions
//          [two-sum]; it is collected in a second vector beside the sum.
// Changes  against pairwise: the error, 2 u plus a term in u^2, as if all were added in twice the
//          precision. What pairwise summation may miss by 45 u, this one gives to the last place.
// Cost     seven additions per element instead of one, which a single thread has time for while it
//          waits for memory, but not in a cache.
// Limits   sums and means of contiguous rows of f32 and f64; finite partial sums.
// Source   D. Knuth, TAOCP 2, 4.2.2; T. Ogita, S. Rump & S. Oishi, "Accurate sum and dot product",
//          SIAM J. Sci. Comput. 26 (2005): Sum2.
#include "rung/cpu/foreach_target.hpp"
#include "rung/ops/reduce/cpu/detail/step-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::reduce_cpu::HWY_NAMESPACE {
namespace {

constexpr int chains = 4;

template <class T>
HWY_NOINLINE double compensated_row(const T* x, std::int64_t n) {
  using S = Step<T, Fold::sum, T>;
  using V = typename S::V;
  const typename S::D d;
  V sum[chains];
  V lost[chains];
#pragma GCC unroll 4
  for (int c = 0; c < chains; ++c) sum[c] = lost[c] = hn::Zero(d);
  const auto take = [&](int c, V v) HWY_ATTR {
    const V total = hn::Add(sum[c], v);
    const V of_v = hn::Sub(total, sum[c]);
    const V error = hn::Add(hn::Sub(sum[c], hn::Sub(total, of_v)), hn::Sub(v, of_v));
    lost[c] = hn::Add(lost[c], error);
    sum[c] = total;
  };
  std::int64_t i = 0;
  for (; i + chains * S::lanes <= n; i += chains * S::lanes) {
#pragma GCC unroll 4
    for (int c = 0; c < chains; ++c) take(c, S::load(x + i + c * S::lanes));
  }
  for (; i < n; i += S::lanes) take(0, S::load_some(x + i, std::min(S::lanes, n - i)));
  // The lanes are combined as they were filled: nothing is lost on the way either.
  HWY_ALIGN T sums[chains * S::lanes];
  HWY_ALIGN T rests[chains * S::lanes];
#pragma GCC unroll 4
  for (int c = 0; c < chains; ++c) {
    hn::Store(sum[c], d, sums + c * S::lanes);
    hn::Store(lost[c], d, rests + c * S::lanes);
  }
  double value = 0;
  double rest = 0;
  for (std::int64_t lane = 0; lane < chains * S::lanes; ++lane) {
    add_exactly(value, rest, static_cast<double>(sums[lane]));
    // An overflow has made infinity - infinity of what is lost: it says nothing then.
    if (std::isfinite(sums[lane])) rest += static_cast<double>(rests[lane]);
  }
  return value + rest;
}

double compensated_f32(const float* x, std::int64_t n) { return compensated_row(x, n); }
double compensated_f64(const double* x, std::int64_t n) { return compensated_row(x, n); }

}  // namespace
}  // namespace rung::reduce_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "rung/ops/reduce/cpu/detail/textbook.hpp"

namespace rung::reduce_cpu {
namespace {
HWY_EXPORT(compensated_f32);
HWY_EXPORT(compensated_f64);

double estimate(const Reduce::Args& args, const Context&) {
  return 2e-7 + Reduce::cost(args).bytes / 30e9;
}

void run(const Reduce::Args& args, Context&) {
  visit<float, double>(args.x.dtype, [&]<class T>() {
    for_each_result<T>(args, [&](const T* x, std::int64_t n) {
      if constexpr (std::is_same_v<T, float>) {
        return HWY_DYNAMIC_DISPATCH(compensated_f32)(x, n);
      } else {
        return HWY_DYNAMIC_DISPATCH(compensated_f64)(x, n);
      }
    });
  });
}

const Rung<Reduce> self{{.name = "compensated",
                         .step = 45,
                         .after = "pairwise",
                         .supports = require_contiguous_rows,
                         .estimate = estimate,
                         .run = run}};
}  // namespace
}  // namespace rung::reduce_cpu
#endif
