// SPDX-License-Identifier: Apache-2.0
// norm / prefetch
//
// Idea     Software prefetch: while the squares of one row are summed, prefetch the next row into
//          L1, one line per vector.
// Changes  against simd: one instruction in the loop of pass 2. Without it the first pass waits for
//          memory, and the other two, in L1, leave memory idle.
// Cost     Same as simd: 12 bytes per element, where 8 are compulsory.
// Limits   Same as simd. Rows longer than L1 evict their own prefetched lines.
// Source   Intel, Optimization Reference Manual, "Software prefetching".
#include <hwy/cache_control.h>

#include <algorithm>
#include <cstdint>

#include "rung/cpu/foreach_target.hpp"
#include "rung/cpu/load-inl.hpp"
#include "rung/ops/norm/cpu/detail/call.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::norm_cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
using cpu::HWY_NAMESPACE::load_as_n;
using cpu::HWY_NAMESPACE::store_as_n;

/// Computes y = (x - mean) rstd gamma + beta for one row of n elements, prefetches the row at
/// `next` into L1, and returns the row's scale; y may be x.
Scale<float> prefetch_row(const Norm::Args& args, const float* x, float* y, std::int64_t n,
                          const float* next) {
  constexpr int chains = 4;
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t turn = chains * lanes;
  const std::int64_t full = n / turn * turn;  // elements in full iterations

  // Pass 1, the mean; RMS norm has none.
  Moments<float> moments{};
  if (args.kind == NormKind::layer) {
    V sums[chains];
#pragma GCC unroll 4
    for (V& sum : sums) sum = hn::Zero(d);
    for (std::int64_t i = 0; i < full; i += turn) {
#pragma GCC unroll 4
      for (int c = 0; c < chains; ++c) sums[c] = hn::Add(sums[c], hn::LoadU(d, x + i + c * lanes));
    }
    for (std::int64_t i = full; i < n; i += lanes) {  // fewer than four vectors, the last partial
      const auto count = static_cast<std::size_t>(std::min(lanes, n - i));
      sums[0] = hn::Add(sums[0], load_as_n(d, x + i, count));
    }
    const V sum = hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
    moments.center = hn::GetLane(hn::SumOfLanes(d, sum)) / static_cast<float>(n);
  }

  // Pass 2: the squares of the differences from the mean, and the sum of the differences, which
  // corrects mean and squares for the rounding of the mean; prefetches the next row.
  const V center = hn::Set(d, moments.center);
  V rests[chains];
  V squares[chains];
#pragma GCC unroll 4
  for (int c = 0; c < chains; ++c) rests[c] = squares[c] = hn::Zero(d);
  for (std::int64_t i = 0; i < full; i += turn) {
#pragma GCC unroll 4
    for (int c = 0; c < chains; ++c) {
      hwy::Prefetch(next + i + c * lanes);
      const V distance = hn::Sub(hn::LoadU(d, x + i + c * lanes), center);
      rests[c] = hn::Add(rests[c], distance);
      squares[c] = hn::MulAdd(distance, distance, squares[c]);
    }
  }
  for (std::int64_t i = full; i < n; i += lanes) {
    const auto count = static_cast<std::size_t>(std::min(lanes, n - i));
    const V distance =
        hn::IfThenElseZero(hn::FirstN(d, count), hn::Sub(load_as_n(d, x + i, count), center));
    rests[0] = hn::Add(rests[0], distance);
    squares[0] = hn::MulAdd(distance, distance, squares[0]);
  }
  if (args.kind == NormKind::layer) {
    moments.rest = hn::GetLane(
        hn::SumOfLanes(d, hn::Add(hn::Add(rests[0], rests[1]), hn::Add(rests[2], rests[3]))));
  }
  moments.squares = hn::GetLane(
      hn::SumOfLanes(d, hn::Add(hn::Add(squares[0], squares[1]), hn::Add(squares[2], squares[3]))));
  if (args.kind == NormKind::layer) moments = finite_moments(moments, x, n);

  // Pass 3, y = ((x - middle) rstd + shift) gamma + beta.
  const Scale<float> scale = scale_of(moments, n, args.epsilon);
  const V middle = hn::Set(d, scale.center);
  const V rstd = hn::Set(d, scale.rstd);
  const V shift = hn::Set(d, scale.shift);
  const auto* gamma = static_cast<const float*>(args.gamma.data);
  const auto* beta = static_cast<const float*>(args.beta.data);
  for (std::int64_t i = 0; i < n; i += lanes) {
    const auto count = static_cast<std::size_t>(std::min(lanes, n - i));
    const bool partial = i + lanes > n;
    const auto load = [&](const float* from) HWY_ATTR RUNG_ALWAYS_INLINE {
      return partial ? load_as_n(d, from + i, count) : hn::LoadU(d, from + i);
    };
    V z = hn::MulAdd(hn::Sub(load(x), middle), rstd, shift);
    if (gamma != nullptr) z = hn::Mul(z, load(gamma));
    if (beta != nullptr) z = hn::Add(z, load(beta));
    if (partial) {
      store_as_n(z, d, y + i, count);
    } else {
      hn::StoreU(z, d, y + i);
    }
  }
  return scale;
}

}  // namespace
}  // namespace rung::norm_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::norm_cpu {
namespace {
HWY_EXPORT(prefetch_row);

void run(const Norm::Args& args, Context&) {
  const norm_lines::Lines lines = norm_lines::lines_of(args);
  const auto* x = static_cast<const float*>(args.x.data);
  auto* y = static_cast<float*>(args.y.data);
  for (std::int64_t row = 0; row < lines.rows.size(); ++row) {
    std::int64_t at[6];
    lines.rows.offsets(row, at);
    std::int64_t next[6];
    lines.rows.offsets(std::min(row + 1, lines.rows.size() - 1), next);
    const Scale<float> scale = HWY_DYNAMIC_DISPATCH(prefetch_row)(
        args, x + at[norm_lines::row_x], y + at[norm_lines::row_y], lines.columns.size(),
        x + next[norm_lines::row_x]);
    store_statistics(args, at, scale.mean, scale.rstd);
  }
}

const Rung<Norm> self{{.name = "prefetch",
                       .step = 50,
                       .after = "simd",
                       .teaching = true,
                       .supports = supports_contiguous_f32,
                       .passes = {.loads = 1, .stores = 2},  // y: read for ownership
                       .run = run}};

}  // namespace
}  // namespace rung::norm_cpu
#endif
