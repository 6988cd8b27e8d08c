// SPDX-License-Identifier: Apache-2.0
// softmax / polynomial
//
// Idea     an exponential in plain arithmetic: 2^t = 2^n p(t - n) with n the integer next to t and
//          p a polynomial of degree 5 on [-1/2, 1/2], log2(e) folded into the scale. The factor 2^n
//          is n put into the exponent bits of a float.
// Changes  against online: no call of the C library, no branch, and so nothing in the way of
//          vectors. Three passes again: the row is in the caches by the time of the second.
// Cost     x read once from memory for rows that fit L1 or L2, y written once and read before it is
//          written; some 15 operations per exponential.
// Limits   f32, contiguous rows, no logarithm; one thread, one element at a time: the
//          additions of the sum have an order, which a compiler must keep, so that it makes no
//          vectors of the loop.
// Source   Polynomial by the Remez exchange (rung/cpu/vector_exp2-inl.hpp); F. de Dinechin and
//          others, expf in CORE-MATH, for the reduction of the argument.
#include <bit>
#include <cstdint>
#include <limits>

#include "rung/ops/softmax/cpu/detail/steps.hpp"

namespace rung {
namespace {

/// 2^t for t <= 0, at most 2.2 units in the last place off; 0 where that is no normal number. NaN
/// stays NaN.
float exp2(float t) {
  constexpr float p[] = {1.0F,          0.693147004F,   0.240222424F,
                         0.0555073358F, 0.00967151299F, 0.00132647273F};
  constexpr float round = 0x1.8p23F;  // adding it leaves the integer in the last bits
  const float bounded = t < -126 ? -126.0F : t;
  const float rounded = bounded + round;
  const float f = bounded - (rounded - round);
  const float power_of_f = p[0] + f * (p[1] + f * (p[2] + f * (p[3] + f * (p[4] + f * p[5]))));
  const std::uint32_t exponent = std::bit_cast<std::uint32_t>(rounded) + 127;
  const float power_of_n = std::bit_cast<float>(exponent << 23);
  return t < -126 ? 0.0F : power_of_f * power_of_n;
}

void softmax_row(const float* x, float* y, std::int64_t n, float scale) {
  // From the lowest finite number: a row of nothing but -infinity then has a sum of 0.
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
