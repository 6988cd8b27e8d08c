// SPDX-License-Identifier: Apache-2.0
// reduce / pairwise
//
// Idea     The sum of n numbers is the sum of the first half plus the sum of the second: an addend
//          takes part in log2(n) additions instead of n. Recursion ends at 1024 elements, which are
//          summed in eight vector accumulators and these combined by halving.
// Changes  Against simd: the error bound is (log2(n / 1024) + 24) u with AVX-512, at most 45 u for
//          any n that fits in memory, whereas simd's grows with n / 64.
// Cost     One recursive call per 1024 elements, hidden behind the loads.
// Limits   Sums and means of contiguous rows of f32 and f64.
// Source   N. Higham, "The accuracy of floating point summation", SIAM J. Sci. Comput. 14 (1993).
#include "rung/cpu/foreach_target.hpp"
#include "rung/cpu/load-inl.hpp"
#include "rung/ops/reduce/cpu/detail/textbook.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::reduce_cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

constexpr std::int64_t leaf = 1024;

template <class T>
T leaf_sum(const T* x, std::int64_t n) {
  constexpr int chains = 8;  // cover the addition latency at two additions per cycle
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<decltype(d)> sum[chains];
#pragma GCC unroll 8
  for (auto& one : sum) one = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + chains * lanes <= n; i += chains * lanes) {
#pragma GCC unroll 8
    for (int c = 0; c < chains; ++c) sum[c] = hn::Add(sum[c], hn::LoadU(d, x + i + c * lanes));
  }
#pragma GCC unroll 4
  for (int half = chains / 2; half > 0; half /= 2) {
#pragma GCC unroll 4
    for (int c = 0; c < half; ++c) sum[c] = hn::Add(sum[c], sum[c + half]);
  }
  for (; i < n; i += lanes) {
    const auto count = static_cast<std::size_t>(std::min(lanes, n - i));
    sum[0] = hn::Add(sum[0], cpu::HWY_NAMESPACE::load_as_n(d, x + i, count));
  }
  return hn::GetLane(hn::SumOfLanes(d, sum[0]));
}

template <class T>
T pairwise_sum(const T* x, std::int64_t n) {
  if (n <= leaf) return leaf_sum(x, n);
  const std::int64_t half = n / 2 / leaf * leaf + (n / 2 < leaf ? leaf : 0);  // whole leaves
  return pairwise_sum(x, half) + pairwise_sum(x + half, n - half);
}

void pairwise(const Reduce::Args& args) {
  visit<float, double>(args.x.dtype, [&]<class T>() { for_each_result<T>(args, pairwise_sum<T>); });
}

}  // namespace
}  // namespace rung::reduce_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::reduce_cpu {
namespace {
HWY_EXPORT(pairwise);

void run(const Reduce::Args& args, Context&) { HWY_DYNAMIC_DISPATCH(pairwise)(args); }

const Rung<Reduce> self{{.name = "pairwise",
                         .step = 40,
                         .after = "simd",
                         .teaching = true,
                         .supports = require_contiguous_rows,
                         .run = run}};
}  // namespace
}  // namespace rung::reduce_cpu
#endif
