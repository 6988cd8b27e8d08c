// SPDX-License-Identifier: Apache-2.0
// softmax / simd
//
// Idea     Use vectors of 16 floats (AVX-512; 8 with AVX2) for the maximum, the same polynomial
//          (rung/cpu/vector_exp2-inl.hpp) and the sum.
// Changes  against polynomial: one instruction for 16 elements. AVX-512 rounds t and scales by a
//          power of 2 in one instruction each. The tail is masked.
// Cost     x is read once from memory, y written once after a read for ownership: 12 bytes per
//          element, where 8 are compulsory. Per vector: 3 loads, 2 stores and some 15 operations.
// Limits   f32, contiguous rows, no logarithm; one thread. Maximum and sum are dependency chains
//          with latencies of 2 and 4 cycles per vector.
// Source   Intel, Optimization Reference Manual, on vectorized loops.
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

/// Computes y = softmax(scale x) for one row of n elements; y may be x.
void simd_row(const float* x, float* y, std::int64_t n, float scale) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t full = n / lanes * lanes;  // elements of full vectors
  const auto rest = static_cast<std::size_t>(n - full);
  const auto in_rest = hn::FirstN(d, rest);

  // Pass 1, the maximum. Starts at the lowest finite number: the exponentials and the sum of a row
  // that is all -infinity are then 0. Max of a NaN and a number returns the second operand: NaN is
  // dropped here and reappears in the sum.
  auto maxima = hn::Set(d, std::numeric_limits<float>::lowest());
  for (std::int64_t i = 0; i < full; i += lanes) {
    maxima = hn::Max(hn::LoadU(d, x + i), maxima);
  }
  const auto last = hn::Max(load_as_n(d, x + full, rest), maxima);
  const auto maximum = hn::MaxOfLanes(d, hn::IfThenElse(in_rest, last, maxima));

  // Pass 2, exp(scale (x - m)) into y, and the sum.
  const auto exponent = hn::Set(d, scale * log2_e<float>);
  auto sums = hn::Zero(d);
  for (std::int64_t i = 0; i < full; i += lanes) {
    const auto e = exp2<false>(d, hn::Mul(hn::Sub(hn::LoadU(d, x + i), maximum), exponent));
    hn::StoreU(e, d, y + i);
    sums = hn::Add(sums, e);
  }
  const auto difference = hn::Sub(load_as_n(d, x + full, rest), maximum);
  const auto e = exp2<false>(d, hn::Mul(difference, exponent));
  store_as_n(e, d, y + full, rest);
  const float sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(sums, hn::IfThenElseZero(in_rest, e))));

  // Pass 3, the results.
  const auto factor = hn::Set(d, sum == 0 ? 0.0F : 1 / sum);
  for (std::int64_t i = 0; i < full; i += lanes) {
    hn::StoreU(hn::Mul(hn::LoadU(d, y + i), factor), d, y + i);
  }
  store_as_n(hn::Mul(load_as_n(d, y + full, rest), factor), d, y + full, rest);
}

}  // namespace
}  // namespace rung::softmax_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "rung/ops/softmax/cpu/detail/steps.hpp"

namespace rung::softmax_cpu {
namespace {
HWY_EXPORT(simd_row);

void run(const Softmax::Args& args, Context&) {
  for (std::int64_t row = 0; row < args.count(); ++row) {
    std::int64_t at[2];
    args.rows.offsets(row, at);
    HWY_DYNAMIC_DISPATCH(simd_row)
    (static_cast<const float*>(args.x.data) + at[0], static_cast<float*>(args.y.data) + at[1],
     args.length(), static_cast<float>(args.scale));
  }
}

const Rung<Softmax> self{{.name = "simd",
                          .step = 40,
                          .after = "polynomial",
                          .teaching = true,
                          .supports = supports_contiguous_f32,
                          .passes = {.loads = 1, .stores = 2},  // y: read for ownership
                          .run = run}};

}  // namespace
}  // namespace rung::softmax_cpu
#endif
