// SPDX-License-Identifier: Apache-2.0
// softmax_backward / simd
//
// Idea     Use vectors of 16 floats (AVX-512; 8 with AVX2) and four independent accumulators for
//          the sum, which hide the latency of the multiply-adds.
// Changes  against naive: one instruction for 16 elements; the tail is one masked vector.
// Cost     y and dy are read once from memory if rows fit L1 or L2, which serve the second pass; dx
//          is written after a read for ownership.
// Limits   f32, contiguous rows, without the logarithm; one thread. Memory is idle while dx is
//          computed from the caches.
// Source   Intel, Optimization Reference Manual, on vectorized loops.
#include <algorithm>
#include <cstdint>

#include "rung/cpu/foreach_target.hpp"
#include "rung/cpu/load-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::softmax_backward_cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
using cpu::HWY_NAMESPACE::load_as_n;
using cpu::HWY_NAMESPACE::store_as_n;

/// Computes dx = scale (dy - sum dy y) y for one row of n elements; dx may be y or dy.
void simd_row(const float* y, const float* dy, float* dx, std::int64_t n, float scale) {
  constexpr int chains = 4;
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t turn = chains * lanes;
  const std::int64_t full = n / turn * turn;  // elements in full iterations

  // Pass 1, the sum.
  V sums[chains];
#pragma GCC unroll 4
  for (V& sum : sums) sum = hn::Zero(d);
  for (std::int64_t i = 0; i < full; i += turn) {
#pragma GCC unroll 4
    for (int c = 0; c < chains; ++c) {
      const std::int64_t at = i + c * lanes;
      sums[c] = hn::MulAdd(hn::LoadU(d, dy + at), hn::LoadU(d, y + at), sums[c]);
    }
  }
  for (std::int64_t i = full; i < n; i += lanes) {  // fewer than four vectors, the last one partial
    const auto count = static_cast<std::size_t>(std::min(lanes, n - i));
    sums[0] = hn::MulAdd(load_as_n(d, dy + i, count), load_as_n(d, y + i, count), sums[0]);
  }
  const V sum = hn::SumOfLanes(d, hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3])));

  // Pass 2, the results. No dependency chain, so a plain loop suffices.
  const V factor = hn::Set(d, scale);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const V difference = hn::Sub(hn::LoadU(d, dy + i), sum);
    hn::StoreU(hn::Mul(hn::Mul(difference, hn::LoadU(d, y + i)), factor), d, dx + i);
  }
  const auto rest = static_cast<std::size_t>(n - i);
  const V difference = hn::Sub(load_as_n(d, dy + i, rest), sum);
  store_as_n(hn::Mul(hn::Mul(difference, load_as_n(d, y + i, rest)), factor), d, dx + i, rest);
}

}  // namespace
}  // namespace rung::softmax_backward_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "rung/ops/softmax_backward/op/softmax_backward.hpp"

namespace rung::softmax_backward_cpu {
namespace {
HWY_EXPORT(simd_row);

Support supports(const SoftmaxBackward::Args& args, const Context&) {
  if (args.log) return unsupported("without the logarithm");
  if (args.y.dtype != DType::f32 || args.dx.dtype != DType::f32) return unsupported("f32 only");
  return args.rows.are_contiguous() ? supported : unsupported("contiguous rows only");
}

void run(const SoftmaxBackward::Args& args, Context&) {
  if (args.empty()) return;
  for (std::int64_t row = 0; row < args.count(); ++row) {
    std::int64_t at[3];
    args.rows.offsets(row, at);
    HWY_DYNAMIC_DISPATCH(simd_row)
    (static_cast<const float*>(args.y.data) + at[0],
     static_cast<const float*>(args.dy.data) + at[1], static_cast<float*>(args.dx.data) + at[2],
     args.length(), static_cast<float>(args.scale));
  }
}

const Rung<SoftmaxBackward> self{{.name = "simd",
                                  .step = 20,
                                  .after = "naive",
                                  .teaching = true,
                                  .supports = supports,
                                  .passes = {.loads = 1, .stores = 2},  // dx: read for ownership
                                  .run = run}};

}  // namespace
}  // namespace rung::softmax_backward_cpu
#endif
