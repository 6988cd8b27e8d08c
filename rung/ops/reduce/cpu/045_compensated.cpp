// SPDX-License-Identifier: Apache-2.0
// reduce / compensated
//
// Idea     Two-sum computes the rounding error of an addition exactly with five more additions; a
//          second vector accumulates these errors.
// Changes  Against pairwise: the error is 2 u plus a term in u^2, as in twice the working
//          precision, instead of up to 45 u.
// Cost     Seven additions per element instead of one: hidden when one thread is bound by memory,
//          visible when x is in a cache.
// Limits   Sums and means of contiguous rows of f32 and f64; partial sums must be finite.
// Source   D. Knuth, TAOCP 2, 4.2.2; T. Ogita, S. Rump & S. Oishi, "Accurate sum and dot product",
//          SIAM J. Sci. Comput. 26 (2005): Sum2.
#include "rung/cpu/foreach_target.hpp"
#include "rung/cpu/load-inl.hpp"
#include "rung/ops/reduce/cpu/detail/textbook.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::reduce_cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
HWY_NOINLINE double compensated_sum(const T* x, std::int64_t n) {
  constexpr int chains = 4;
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  V sum[chains];
  V lost[chains];
#pragma GCC unroll 4
  for (int c = 0; c < chains; ++c) sum[c] = lost[c] = hn::Zero(d);
  const auto add = [&](int c, V v) HWY_ATTR {
    const V total = hn::Add(sum[c], v);
    const V of_v = hn::Sub(total, sum[c]);
    const V error = hn::Add(hn::Sub(sum[c], hn::Sub(total, of_v)), hn::Sub(v, of_v));
    lost[c] = hn::Add(lost[c], error);
    sum[c] = total;
  };
  std::int64_t i = 0;
  for (; i + chains * lanes <= n; i += chains * lanes) {
#pragma GCC unroll 4
    for (int c = 0; c < chains; ++c) add(c, hn::LoadU(d, x + i + c * lanes));
  }
  for (; i < n; i += lanes) {
    const auto count = static_cast<std::size_t>(std::min(lanes, n - i));
    add(0, cpu::HWY_NAMESPACE::load_as_n(d, x + i, count));
  }
  // The lanes are combined by the same two-sum.
  HWY_ALIGN T sums[chains * hn::MaxLanes(d)];
  HWY_ALIGN T rests[chains * hn::MaxLanes(d)];
#pragma GCC unroll 4
  for (int c = 0; c < chains; ++c) {
    hn::Store(sum[c], d, sums + c * lanes);
    hn::Store(lost[c], d, rests + c * lanes);
  }
  double value = 0;
  double rest = 0;
  for (std::int64_t lane = 0; lane < chains * lanes; ++lane) {
    add_exactly(value, rest, static_cast<double>(sums[lane]));
    // After an overflow the error is infinity - infinity = NaN: ignore it.
    if (std::isfinite(sums[lane])) rest += static_cast<double>(rests[lane]);
  }
  return value + rest;
}

void compensated(const Reduce::Args& args) {
  visit<float, double>(args.x.dtype,
                       [&]<class T>() { for_each_result<T>(args, compensated_sum<T>); });
}

}  // namespace
}  // namespace rung::reduce_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::reduce_cpu {
namespace {
HWY_EXPORT(compensated);

void run(const Reduce::Args& args, Context&) { HWY_DYNAMIC_DISPATCH(compensated)(args); }

Work work(const Reduce::Args& args, const Context&) { return row_facts(args, 1); }

const Rung<Reduce> self{{.name = "compensated",
                         .step = 45,
                         .after = "pairwise",
                         .supports = require_contiguous_rows,
                         .work = work,
                         .run = run}};
}  // namespace
}  // namespace rung::reduce_cpu
#endif
