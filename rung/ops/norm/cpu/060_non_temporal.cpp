// SPDX-License-Identifier: Apache-2.0
// norm / non-temporal stores
//
// Idea     An ordinary store first fetches the line that it overwrites (read for ownership). A
//          non-temporal store of a full line avoids that and leaves the caches to x.
// Changes  against prefetch: y is written with non-temporal stores.
// Cost     x is read once, y written once: the compulsory 8 bytes per element.
// Limits   Same as prefetch. Slower if y would fit in the caches, and the next reader of y has to
//          load it from memory.
// Source   Intel, Optimization Reference Manual, "Non-temporal stores".
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
Scale<float> non_temporal_row(const Norm::Args& args, const float* x, float* y, std::int64_t n,
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
  const auto result = [&](std::int64_t i, std::size_t count) HWY_ATTR RUNG_ALWAYS_INLINE {
    V z = hn::MulAdd(hn::Sub(load_as_n(d, x + i, count), middle), rstd, shift);
    if (gamma != nullptr) z = hn::Mul(z, load_as_n(d, gamma + i, count));
    if (beta != nullptr) z = hn::Add(z, load_as_n(d, beta + i, count));
    return z;
  };
  // A non-temporal store needs an address aligned to its vector; the head and the tail of the row
  // use ordinary stores.
  const auto bytes = static_cast<std::uintptr_t>(lanes) * sizeof(float);
  const auto past = reinterpret_cast<std::uintptr_t>(y) % bytes;
  const auto head = std::min(n, static_cast<std::int64_t>((bytes - past) % bytes / sizeof(float)));
  store_as_n(result(0, static_cast<std::size_t>(head)), d, y, static_cast<std::size_t>(head));
  std::int64_t i = head;
  for (; i + lanes <= n; i += lanes) {
    hn::Stream(result(i, static_cast<std::size_t>(lanes)), d, y + i);
  }
  store_as_n(result(i, static_cast<std::size_t>(n - i)), d, y + i, static_cast<std::size_t>(n - i));
  return scale;
}

}  // namespace
}  // namespace rung::norm_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::norm_cpu {
namespace {
HWY_EXPORT(non_temporal_row);

void run(const Norm::Args& args, Context&) {
  const norm_lines::Lines lines = norm_lines::lines_of(args);
  const auto* x = static_cast<const float*>(args.x.data);
  auto* y = static_cast<float*>(args.y.data);
  for (std::int64_t row = 0; row < lines.rows.size(); ++row) {
    std::int64_t at[6];
    lines.rows.offsets(row, at);
    std::int64_t next[6];
    lines.rows.offsets(std::min(row + 1, lines.rows.size() - 1), next);
    const Scale<float> scale = HWY_DYNAMIC_DISPATCH(non_temporal_row)(
        args, x + at[norm_lines::row_x], y + at[norm_lines::row_y], lines.columns.size(),
        x + next[norm_lines::row_x]);
    store_statistics(args, at, scale.mean, scale.rstd);
  }
  hwy::FlushStream();  // orders the non-temporal stores before later stores of this thread
}

const Rung<Norm> self{{.name = "non_temporal",
                       .step = 60,
                       .after = "prefetch",
                       .teaching = true,
                       .supports = supports_contiguous_f32,
                       .passes = {.loads = 1, .stores = 1},
                       .run = run}};

}  // namespace
}  // namespace rung::norm_cpu
#endif
