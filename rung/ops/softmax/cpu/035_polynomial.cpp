// SPDX-License-Identifier: Apache-2.0
// softmax / polynomial
//
// Idea     Compute exp by arithmetic: 2^t = 2^n p(t - n), where n is the integer nearest to t, p is
//          a polynomial of degree 5 on [-1/2, 1/2], and log2(e) is folded into the scale. The
//          factor 2^n is built by adding n to a float's exponent bits.
// Changes  against online: no library call and no branch, so the exponential can be vectorized.
//          Three passes again: from the second on, the row is in cache.
// Cost     x is read once from memory if rows fit L1 or L2; y is written once, after a read for
//          ownership; some 15 operations per exponential.
// Limits   f32, contiguous rows, no logarithm; one thread, scalar code: compilers must keep the
//          order of floating-point additions, so they do not vectorize the sum.
// Source   Polynomial by the Remez algorithm (rung/cpu/vector_exp2-inl.hpp); F. de Dinechin and
//          others, expf in CORE-MATH, for the argument reduction.
#include <bit>
#include <cstdint>
#include <limits>

#include "rung/ops/softmax/cpu/detail/steps.hpp"

namespace rung {
namespace {

/// Returns 2^t for t <= 0, within 2.2 ulp; 0 for t < -126 (subnormal results), NaN for NaN.
float exp2(float t) {
  constexpr float p[] = {1.0F,          0.693147004F,   0.240222424F,
                         0.0555073358F, 0.00967151299F, 0.00132647273F};
  constexpr float round = 0x1.8p23F;  // adding it leaves the integer in the low bits
  const float bounded = t < -126 ? -126.0F : t;
  const float rounded = bounded + round;
  const float f = bounded - (rounded - round);
  const float power_of_f = p[0] + f * (p[1] + f * (p[2] + f * (p[3] + f * (p[4] + f * p[5]))));
  const std::uint32_t exponent = std::bit_cast<std::uint32_t>(rounded) + 127;
  const float power_of_n = std::bit_cast<float>(exponent << 23);
  return t < -126 ? 0.0F : power_of_f * power_of_n;
}

void softmax_row(const float* x, float* y, std::int64_t n, float scale) {
  // Starts at the lowest finite number: the sum of a row that is all -infinity is then 0.
  float maximum = std::numeric_limits<float>::lowest();
  for (std::int64_t i = 0; i < n; ++i) maximum = x[i] > maximum ? x[i] : maximum;
  const float exponent = scale * 1.44269504F;  // log2(e)
  float sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    y[i] = exp2((x[i] - maximum) * exponent);
    sum += y[i];
  }
  const float factor = sum == 0 ? 0.0F : 1 / sum;
  for (std::int64_t i = 0; i < n; ++i) y[i] *= factor;
}

void run(const Softmax::Args& args, Context&) {
  for (std::int64_t row = 0; row < args.count(); ++row) {
    std::int64_t at[2];
    args.rows.offsets(row, at);
    softmax_row(static_cast<const float*>(args.x.data) + at[0],
                static_cast<float*>(args.y.data) + at[1], args.length(),
                static_cast<float>(args.scale));
  }
}

const Rung<Softmax> self{{.name = "polynomial",
                          .step = 35,
                          .after = "online",
                          .teaching = true,
                          .supports = softmax_cpu::supports_contiguous_f32,
                          .passes = {.loads = 1, .stores = 2},  // y: read for ownership
                          .run = run}};

}  // namespace
}  // namespace rung
