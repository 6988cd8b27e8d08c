// SPDX-License-Identifier: Apache-2.0
// conv / Winograd F(2x2, 3x3)
//
// Idea     a tile of 2 x 2 pixels of a 3 x 3 filter takes 36 multiplications. Transformed - tiles
//          of x and filters by additions and halves alone - it takes 16: those of the elements of
//          two tiles of 4 x 4. For each of the 16, the sum over channels is a matrix product.
// Changes  against direct_simd: 2.25 times less to multiply. All threads.
// Cost     x is transformed four times its size; 32 additions per tile and channel, 24 per filter.
// Limits   f32, 3 x 3, stride and dilation 1, two dimensions, and only where `winograd` is given:
//          sums cancel, |error| <= (C/G + 24) u 64 sum of max |w| max |x|, in practice a bit lost.
// Tried    -
// Source   S. Winograd, Arithmetic complexity of computations, 1980; A. Lavin & S. Gray, Fast
//          algorithms for convolutional neural networks, 2015.
#include "rung/cpu/foreach_target.hpp"

#include "rung/ops/conv/cpu/detail/winograd-inl.hpp"
#include "rung/ops/conv/shared/cpu/call.hpp"
#include "rung/ops/conv/shared/layer.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::conv_cpu::HWY_NAMESPACE {
void winograd_2(const Conv::Args& args, Context& context) {
  winograd<2>(conv_layer::forward(args), context, context.threads());
}
}  // namespace rung::conv_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung {
namespace conv_cpu {
namespace {
HWY_EXPORT(winograd_2);
void winograd_2_on_this_machine(const Conv::Args& args, Context& context) {
  HWY_DYNAMIC_DISPATCH(winograd_2)(args, context);
}
}  // namespace
}  // namespace conv_cpu

namespace {

double estimate(const Conv::Args& args, const Context& context) {
  return conv_cpu::winograd_seconds(args, 2, context.threads());
}

void run(const Conv::Args& args, Context& context) {
  conv_cpu::winograd_2_on_this_machine(args, context);
}

const Rung<Conv> self{{.name = "winograd_2",
                       .after = "direct_simd",
                       .supports = conv_cpu::takes_winograd,
                       .estimate = estimate,
                       .run = run}};

}  // namespace
}  // namespace rung
#endif
