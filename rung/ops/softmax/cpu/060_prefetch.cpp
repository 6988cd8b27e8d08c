// SPDX-License-Identifier: Apache-2.0
// softmax / prefetch
//
// Idea     Software prefetch: while the exponentials of one row are computed, prefetch the next row
//          into L1, one line per vector.
// Changes  against four_chains: one instruction in the loop of pass 2. Without it the maximum pass
//          waits for memory and the exponential pass leaves memory idle: hardware prefetchers
//          follow the current loads, not the row that comes next.
// Cost     Same as simd: 12 bytes per element, where 8 are compulsory; the loads now overlap
//          arithmetic.
// Limits   Same as simd. Rows longer than L1 evict their own prefetched lines.
// Source   Intel, Optimization Reference Manual, "Software prefetching".
#include <hwy/cache_control.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "rung/cpu/foreach_target.hpp"
#include "rung/cpu/load-inl.hpp"
#include "rung/cpu/vector_exp2-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::softmax_cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
using cpu::HWY_NAMESPACE::exp2;
using cpu::HWY_NAMESPACE::load_as_n;
using cpu::HWY_NAMESPACE::log2_e;
using cpu::HWY_NAMESPACE::store_as_n;

/// Computes y = softmax(scale x) for one row of n elements and prefetches the row at `next` into
/// L1; y may be x.
void prefetch_row(const float* x, float* y, std::int64_t n, float scale, const float* next) {
  constexpr int chains = 4;
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t turn = chains * lanes;
  const std::int64_t full = n / turn * turn;  // elements in full iterations

  // Pass 1, the maximum.
  V maxima[chains];
#pragma GCC unroll 4
  for (V& maximum : maxima) maximum = hn::Set(d, std::numeric_limits<float>::lowest());
  for (std::int64_t i = 0; i < full; i += turn) {
#pragma GCC unroll 4
    for (int c = 0; c < chains; ++c) {
      maxima[c] = hn::Max(hn::LoadU(d, x + i + c * lanes), maxima[c]);
    }
  }
  for (std::int64_t i = full; i < n; i += lanes) {  // fewer than four vectors, the last one partial
    const auto count = static_cast<std::size_t>(std::min(lanes, n - i));
    const V larger = hn::Max(load_as_n(d, x + i, count), maxima[0]);
    maxima[0] = hn::IfThenElse(hn::FirstN(d, count), larger, maxima[0]);
  }
  const V maximum =
      hn::MaxOfLanes(d, hn::Max(hn::Max(maxima[0], maxima[1]), hn::Max(maxima[2], maxima[3])));

  // Pass 2: exp(scale (x - m)) into y, the sum, and a prefetch of the next row's line per vector
  // (an AVX-512 vector is one line).
  const V exponent = hn::Set(d, scale * log2_e<float>);
  V sums[chains];
#pragma GCC unroll 4
  for (V& sum : sums) sum = hn::Zero(d);
  for (std::int64_t i = 0; i < full; i += turn) {
#pragma GCC unroll 4
    for (int c = 0; c < chains; ++c) {
      hwy::Prefetch(next + i + c * lanes);
      const V difference = hn::Sub(hn::LoadU(d, x + i + c * lanes), maximum);
      const V e = exp2<false>(d, hn::Mul(difference, exponent));
      hn::StoreU(e, d, y + i + c * lanes);
      sums[c] = hn::Add(sums[c], e);
    }
  }
  for (std::int64_t i = full; i < n; i += lanes) {
    const auto count = static_cast<std::size_t>(std::min(lanes, n - i));
    const V difference = hn::Sub(load_as_n(d, x + i, count), maximum);
    const V e = exp2<false>(d, hn::Mul(difference, exponent));
    store_as_n(e, d, y + i, count);
    sums[0] = hn::Add(sums[0], hn::IfThenElseZero(hn::FirstN(d, count), e));
  }
  const float sum =
      hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]))));

  // Pass 3, the results.
  const float factor = sum == 0 ? 0.0F : 1 / sum;
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::Mul(hn::LoadU(d, y + i), hn::Set(d, factor)), d, y + i);
  }
  for (; i < n; ++i) y[i] *= factor;
}

}  // namespace
}  // namespace rung::softmax_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "rung/ops/softmax/cpu/detail/steps.hpp"

namespace rung::softmax_cpu {
namespace {
HWY_EXPORT(prefetch_row);

void run(const Softmax::Args& args, Context&) {
  const auto* x = static_cast<const float*>(args.x.data);
  auto* y = static_cast<float*>(args.y.data);
  for (std::int64_t row = 0; row < args.count(); ++row) {
    std::int64_t at[2];
    std::int64_t next[2];
    args.rows.offsets(row, at);
    args.rows.offsets(std::min(row + 1, args.count() - 1), next);
    HWY_DYNAMIC_DISPATCH(prefetch_row)
    (x + at[0], y + at[1], args.length(), static_cast<float>(args.scale), x + next[0]);
  }
}

const Rung<Softmax> self{{.name = "prefetch",
                          .step = 60,
                          .after = "four_chains",
                          .teaching = true,
                          .supports = supports_contiguous_f32,
                          .passes = {.loads = 1, .stores = 2},  // y: read for ownership
                          .run = run}};

}  // namespace
}  // namespace rung::softmax_cpu
#endif
