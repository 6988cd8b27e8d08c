// SPDX-License-Identifier: Apache-2.0
// reduce / simd
//
// Idea     the four accumulators are vectors of 16 f32 each with AVX-512: 64 elements per turn.
// Changes  against unrolled: one instruction for 16 additions. The last elements come by a masked
//          load; the lanes are added by halves.
// Cost     a load and an addition per vector: as fast as L1 and L2 deliver; memory alone decides
//          beyond.
// Limits   sums of contiguous rows of f32 and f64. Error up to (n / 64 + 6) u: still growing with
//          n, which is why pairwise comes next.
// Source   as unrolled.
#include <algorithm>
#include <cstdint>

#include "rung/cpu/foreach_target.hpp"
#include "rung/cpu/load-inl.hpp"

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
  for (; i < n; i += lanes) {  // fewer than four vectors, zeros behind the last element
    const auto count = static_cast<std::size_t>(std::min(lanes, n - i));
    sum[0] = hn::Add(sum[0], cpu::HWY_NAMESPACE::load_as_n(d, x + i, count));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(sum[0], sum[1]), hn::Add(sum[2], sum[3]))));
}

float simd_f32(const float* x, std::int64_t n) { return simd_sum(x, n); }
double simd_f64(const double* x, std::int64_t n) { return simd_sum(x, n); }

}  // namespace
}  // namespace rung::reduce_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "rung/ops/reduce/cpu/detail/textbook.hpp"

namespace rung::reduce_cpu {
namespace {
HWY_EXPORT(simd_f32);
HWY_EXPORT(simd_f64);

template <class T>
void simd(const Reduce::Args& args) {
  for (std::int64_t result = 0; result < args.kept.size(); ++result) {
    std::int64_t at[2];
    args.kept.offsets(result, at);
    const T* x = static_cast<const T*>(args.x.data) + at[0];
    T& y = static_cast<T*>(args.y.data)[at[1]];
    if constexpr (std::is_same_v<T, float>) {
      y = HWY_DYNAMIC_DISPATCH(simd_f32)(x, args.terms.size());
    } else {
      y = HWY_DYNAMIC_DISPATCH(simd_f64)(x, args.terms.size());
    }
  }
}

void run(const Reduce::Args& args, Context&) {
  visit<float, double>(args.x.dtype, [&]<class T>() { simd<T>(args); });
}

const Rung<Reduce> self{{.name = "simd",
                         .step = 30,
                         .after = "unrolled",
                         .teaching = true,
                         .supports = require_contiguous_float_sums,
                         .run = run}};
}  // namespace
}  // namespace rung::reduce_cpu
#endif
