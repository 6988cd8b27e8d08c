// SPDX-License-Identifier: Apache-2.0
// norm_backward / SIMD
//
// Idea     vectors along contiguous rows: one pass for the two means, one for dx, during which the
//          row's terms of dgamma and dbeta are added to sums that stay in cache. Rows are added up
//          in up to 64 shares, each with sums of its own: short chains of additions, and an order
//          that does not depend on who does them.
// Changes  against naive: x and dy are read from memory once, along their rows.
// Cost     x, dy and dx once; 2 to 4 n numbers of sums read and written in cache for each row.
// Limits   contiguous rows; one thread.
// Tried    -
// Source   -
#include "rung/ops/norm_backward/cpu/detail/plan.hpp"

namespace rung {
namespace {

Support supports(const NormBackward::Args& args, const Context&) {
  return norm_backward_cpu::supports(args);
}

double estimate(const NormBackward::Args& args, const Context&) {
  return norm_backward_cpu::seconds(args, 1);
}

void run(const NormBackward::Args& args, Context& context) {
  norm_backward_cpu::differentiate(args, context, 1);
}

const Rung<NormBackward> self{{.name = "simd",
                               .step = 20,
                               .after = "naive",
                               .supports = supports,
                               .estimate = estimate,
                               .run = run}};

}  // namespace
}  // namespace rung
