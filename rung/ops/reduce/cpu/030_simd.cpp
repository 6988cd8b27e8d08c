// SPDX-License-Identifier: Apache-2.0
// reduce / simd
//
// Idea     The four accumulators are vectors, of 16 f32 each with AVX-512: 64 elements per
//          iteration.
// Changes  Against unrolled: one instruction performs 16 additions. A masked load covers the tail;
//          the lanes are reduced by halving.
// Cost     A load and an addition per vector: bound by L1 or L2 bandwidth, for larger rows by
//          memory bandwidth.
// Limits   Sums of contiguous rows of f32 and f64. Error up to (n / 64 + 10) u with 16 lanes: it
//          grows with n, which is why pairwise comes next.
// Source   as unrolled.
#include "rung/cpu/foreach_target.hpp"
#include "rung/cpu/load-inl.hpp"
#include "rung/ops/reduce/cpu/detail/textbook.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::reduce_cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
T simd_sum(const T* x, std::int64_t n) {
  constexpr int accumulators = 4;
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  V sum[accumulators];
#pragma GCC unroll 4
  for (V& one : sum) one = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + accumulators * lanes <= n; i += accumulators * lanes) {
#pragma GCC unroll 4
    for (int a = 0; a < accumulators; ++a) {
      sum[a] = hn::Add(sum[a], hn::LoadU(d, x + i + a * lanes));
    }
  }
  for (; i < n; i += lanes) {  // tail: fewer than four vectors, padded with zeros
    const auto count = static_cast<std::size_t>(std::min(lanes, n - i));
    sum[0] = hn::Add(sum[0], cpu::HWY_NAMESPACE::load_as_n(d, x + i, count));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(sum[0], sum[1]), hn::Add(sum[2], sum[3]))));
}

void simd(const Reduce::Args& args) {
  visit<float, double>(args.x.dtype, [&]<class T>() {
    for (std::int64_t result = 0; result < args.kept.size(); ++result) {
      std::int64_t at[2];
      args.kept.offsets(result, at);
      const T* x = static_cast<const T*>(args.x.data) + at[0];
      static_cast<T*>(args.y.data)[at[1]] = simd_sum(x, args.terms.size());
    }
  });
}

}  // namespace
}  // namespace rung::reduce_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::reduce_cpu {
namespace {
HWY_EXPORT(simd);

void run(const Reduce::Args& args, Context&) { HWY_DYNAMIC_DISPATCH(simd)(args); }

const Rung<Reduce> self{{.name = "simd",
                         .step = 30,
                         .after = "unrolled",
                         .teaching = true,
                         .supports = require_contiguous_float_sums,
                         .run = run}};
}  // namespace
}  // namespace rung::reduce_cpu
#endif
