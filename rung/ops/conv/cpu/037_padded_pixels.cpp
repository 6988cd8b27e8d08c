// SPDX-License-Identifier: Apache-2.0
// conv / padded pixels
//
// Idea     with channels last the taps of one row of a filter are contiguous, channels of all of
//          them, once the padding stands around a copy of x: a pixel's terms are a few runs, at
//          offsets that all pixels share. Eight pixels by one to three vectors of filters, or six
//          by four, are summed in registers over all terms in one go.
// Changes  against padded_planes: pixels are rows, filters columns; x is copied as it lies and y
//          stored as it is summed. Against direct_simd: one call per tile instead of one per tap,
//          and eight chains of additions where there are but 16 filters.
// Cost     a load of weights per vector and a broadcast per pixel for each term; the copy, where
//          there is padding or a small type to widen.
// Limits   channels contiguous in x and y; filters that do not span millions of places. Filters
//          are rounded up to whole vectors. One thread.
// Tried    -
// Source   J. Zhang, F. Franchetti & T. Low, High performance zero-memory overhead direct
//          convolutions, 2018.
#include "rung/cpu/foreach_target.hpp"

#include "rung/core/context.hpp"
#include "rung/ops/conv/shared/cpu/call.hpp"
#include "rung/ops/conv/shared/cpu/direct-inl.hpp"
#include "rung/ops/conv/shared/cpu/pixels.hpp"
#include "rung/ops/conv/shared/layer.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::conv_cpu::HWY_NAMESPACE {
void padded_pixels(const Gathered& g, Context& context, int threads) {
  visit<float, double, f16, bf16>(
      g.dtype, [&]<class In>() { run_layer<PixelRows<Accumulator<In>, In>>(g, context, threads); });
}
}  // namespace rung::conv_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung {
namespace conv_cpu {
HWY_EXPORT(padded_pixels);
void pixels_on(const conv_layer::Gathered& layer, Context& context, int threads) {
  HWY_DYNAMIC_DISPATCH(padded_pixels)(layer, context, threads);
}
}  // namespace conv_cpu

namespace {

Support supports(const Conv::Args& args, const Context&) {
  return conv_cpu::takes_pixels(conv_layer::forward(args))
             ? supported
             : unsupported("channels last, and filters that span less than a band of rows holds");
}

double estimate(const Conv::Args& args, const Context&) {
  return conv_cpu::pixels_seconds(conv_layer::forward(args)) + conv_cpu::seconds(args, 1);
}

void run(const Conv::Args& args, Context& context) {
  conv_cpu::pixels_on(conv_layer::forward(args), context, 1);
}

const Rung<Conv> self{{.name = "padded_pixels",
                       .step = 37,
                       .after = "padded_planes",
                       .supports = supports,
                       .estimate = estimate,
                       .run = run}};

}  // namespace
}  // namespace rung
#endif
