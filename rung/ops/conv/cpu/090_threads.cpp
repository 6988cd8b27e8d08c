// SPDX-License-Identifier: Apache-2.0
// conv / threads
//
// Idea     panels of pixels or bands of rows, and where there are few of them blocks of filters,
//          are shared among the threads: none depends on another.
// Changes  against padded_planes: all cores. Weights that have to be packed are packed together
//          first. Where planes would be mostly padding, or channels are contiguous, it gathers as
//          direct_simd does.
// Cost     as padded_planes or direct_simd, whichever costs less.
// Limits   every valid call. Small ones are left to one thread.
// Tried    -
// Source   -
#include "rung/cpu/worth.hpp"
#include "rung/ops/conv/cpu/detail/call.hpp"
#include "rung/ops/conv/cpu/detail/planes.hpp"
#include "rung/ops/conv/layer.hpp"

namespace rung {
namespace {

/// Where planes are not preferred, nothing is saved by them.
double saved_by_planes(const conv_layer::Gathered& g) {
  return conv_cpu::prefers_planes(g) ? conv_cpu::planes_seconds(g) : 0;
}

int threads_of(const Conv::Args& args, const conv_layer::Gathered& g, const Context& context) {
  return cpu::threads_worth(conv_cpu::seconds(args, 1) + saved_by_planes(g), context.threads());
}

double estimate(const Conv::Args& args, const Context& context) {
  const conv_layer::Gathered g = conv_layer::forward(args);
  const int threads = threads_of(args, g, context);
  return conv_cpu::seconds(args, threads) + saved_by_planes(g) / threads;
}

void run(const Conv::Args& args, Context& context) {
  const conv_layer::Gathered g = conv_layer::forward(args);
  const int threads = threads_of(args, g, context);
  if (conv_cpu::prefers_planes(g)) {
    conv_cpu::planes_on(args, context, threads);
  } else {
    conv_cpu::direct_on(args, context, threads);
  }
}

const Rung<Conv> self{
    {.name = "threads", .step = 90, .after = "padded_planes", .estimate = estimate, .run = run}};

}  // namespace
}  // namespace rung
