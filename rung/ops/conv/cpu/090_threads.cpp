// SPDX-License-Identifier: Apache-2.0
// conv / threads
//
// Idea     Panels of pixels or bands of rows, and if these are few also blocks of filters, are
//          divided among the threads: they are independent.
// Changes  Against padded_pixels: all cores. All threads pack the weights first, if they need
//          packing. The fastest of direct_simd, padded_planes and padded_pixels by predicted time
//          is used.
// Cost     as direct_simd, padded_planes or padded_pixels.
// Limits   None. Small layers run on one thread.
#include "rung/ops/conv/op/conv.hpp"
#include "rung/ops/conv/shared/cpu/bands.hpp"
#include "rung/ops/conv/shared/cpu/call.hpp"
#include "rung/ops/conv/shared/layer.hpp"

namespace rung {
namespace conv_cpu {
const Way& fastest_way(const Gathered& g, const Context& context) {
  static const Way ways[] = {{direct_on, direct_facts, "direct_simd"},
                             {planes_on, planes_facts, "padded_planes"},
                             {pixels_on, pixels_facts, "padded_pixels"}};
  static const detail::RatesCache rates[std::size(ways)];
  const bool takes[] = {true, g.terms() > 0 && takes_planes(g), g.terms() > 0 && takes_pixels(g)};
  const Context& fixed = comparison_context(context);
  const Way* best = nullptr;
  double least = 0;
  for (std::size_t i = 0; i < std::size(ways); ++i) {
    if (!takes[i]) continue;
    Work work = ways[i].facts(g, 1);
    work.bytes = bytes_of(g);
    const double seconds =
        predict(terms_of(work, fixed), rates[i].get(Conv::name, ways[i].name, fixed)(work.path),
                fixed.backend())
            .seconds;
    if (best != nullptr && seconds >= least) continue;
    best = &ways[i];
    least = seconds;
  }
  return *best;
}
}  // namespace conv_cpu

namespace {

using conv_layer::Gathered;

int threads_of(const Gathered& g, const Context& context) {
  return conv_cpu::threads_for(conv_cpu::products_of(g), context.threads());
}

Work work(const Conv::Args& args, const Context& context) {
  const Gathered g = conv_layer::forward(args);
  return conv_cpu::fastest_facts(g, context, threads_of(g, context));
}

void run(const Conv::Args& args, Context& context) {
  const Gathered g = conv_layer::forward(args);
  conv_cpu::fastest_way(g, context).layer_on(g, context, threads_of(g, context));
}

const Rung<Conv> self{
    {.name = "threads", .step = 90, .after = "padded_pixels", .work = work, .run = run}};

}  // namespace
}  // namespace rung
