// SPDX-License-Identifier: Apache-2.0
// conv / threads
//
// Idea     panels of pixels or bands of rows, and where there are few of them blocks of filters,
//          are shared among the threads: none depends on another.
// Changes  against padded_pixels: all cores. Weights that have to be packed are packed together
//          first. Of gathering, planes and rows of pixels, the one that costs least.
// Cost     as direct_simd, padded_planes or padded_pixels.
// Limits   every valid call. Small ones are left to one thread.
#include "rung/cpu/worth.hpp"
#include "rung/ops/conv/cpu/detail/call.hpp"
#include "rung/ops/conv/shared/cpu/bands.hpp"
#include "rung/ops/conv/shared/cpu/call.hpp"
#include "rung/ops/conv/shared/layer.hpp"

namespace rung {
namespace conv_cpu {
Choice fastest_way(const Gathered& g) {
  Choice best{direct_on, 0};
  if (g.terms() == 0) return best;
  const auto weigh = [&](auto layer_on, double seconds) {
    if (seconds < best.seconds) best = {layer_on, seconds};
  };
  if (takes_planes(g)) weigh(planes_on, planes_seconds(g));
  if (takes_pixels(g)) weigh(pixels_on, pixels_seconds(g));
  return best;
}
}  // namespace conv_cpu

namespace {

using conv_cpu::Choice;

int threads_of(const Conv::Args& args, const Choice& choice, const Context& context) {
  if (context.threads() == 1) return 1;
  return cpu::threads_worth(conv_cpu::seconds(args, 1) + choice.seconds, context.threads());
}

double estimate(const Conv::Args& args, const Context& context) {
  const Choice choice = conv_cpu::fastest_way(conv_layer::forward(args));
  const int threads = threads_of(args, choice, context);
  return conv_cpu::seconds(args, threads) + choice.seconds / threads;
}

void run(const Conv::Args& args, Context& context) {
  const conv_layer::Gathered layer = conv_layer::forward(args);
  const Choice choice = conv_cpu::fastest_way(layer);
  choice.layer_on(layer, context, threads_of(args, choice, context));
}

const Rung<Conv> self{
    {.name = "threads", .step = 90, .after = "padded_pixels", .estimate = estimate, .run = run}};

}  // namespace
}  // namespace rung
