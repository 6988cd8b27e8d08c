// SPDX-License-Identifier: Apache-2.0
// norm_backward / threads
//
// Idea     the shares of rows are dealt to threads; after a barrier each adds up some columns of
//          the shares' sums, always in the order of the shares.
// Changes  against simd: all cores, and the same bits.
// Cost     as simd.
// Limits   contiguous rows.
// Tried    -
// Source   -
#include "rung/ops/norm_backward/cpu/detail/plan.hpp"

namespace rung {
namespace {

Support supports(const NormBackward::Args& args, const Context&) {
  return norm_backward_cpu::supports(args);
}

double estimate(const NormBackward::Args& args, const Context& context) {
  return norm_backward_cpu::seconds(args, context.threads());
}

void run(const NormBackward::Args& args, Context& context) {
  norm_backward_cpu::differentiate(args, context, context.threads());
}

const Rung<NormBackward> self{{.name = "threads",
                               .step = 30,
                               .after = "simd",
                               .supports = supports,
                               .estimate = estimate,
                               .run = run}};

}  // namespace
}  // namespace rung
