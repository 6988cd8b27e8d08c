// SPDX-License-Identifier: Apache-2.0
// conv / threads
//
// Idea     panels of pixels or bands of rows, and where there are few of them blocks of filters,
//          are shared among the threads: none depends on another.
// Changes  against padded_planes: all cores. Weights that have to be packed are packed together
//          first. Where planes would be mostly padding, or channels are contiguous, it gathers as
//          direct_simd does.
// Cost     as padded_planes or direct_simd, whichever costs less.
// Limits   every valid call.
// Tried    -
// Source   -
#include "rung/ops/conv/cpu/detail/call.hpp"
#include "rung/ops/conv/cpu/detail/planes.hpp"
#include "rung/ops/conv/layer.hpp"

namespace rung {
namespace {

double estimate(const Conv::Args& args, const Context& context) {
  const conv_layer::Gathered g = conv_layer::forward(args);
  const double saved = conv_cpu::prefers_planes(g) ? conv_cpu::planes_seconds(g) : 0;
  return conv_cpu::seconds(args, context.threads()) + saved / context.threads();
}

void run(const Conv::Args& args, Context& context) {
  if (conv_cpu::prefers_planes(conv_layer::forward(args))) {
    conv_cpu::planes_on(args, context, context.threads());
  } else {
    conv_cpu::direct_on(args, context, context.threads());
  }
}

const Rung<Conv> self{
    {.name = "threads", .step = 90, .after = "padded_planes", .estimate = estimate, .run = run}};

}  // namespace
}  // namespace rung
