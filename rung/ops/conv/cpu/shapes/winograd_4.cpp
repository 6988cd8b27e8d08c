// SPDX-License-Identifier: Apache-2.0
// conv / Winograd F(4x4, 3x3)
//
// Idea     the larger tile: 4 x 4 pixels take 144 multiplications, or 36 of tiles of 6 x 6.
// Changes  against winograd_2: 4 times less to multiply than direct_simd, instead of 2.25.
// Cost     transforms multiply by 4, 5, 8 and divide by 24; x is transformed 2.25 times its size.
// Limits   as winograd_2; the points -2 and 2 of the interpolation make the error larger: the worst
//          case is (C/G + 24) u 3000 sum of max |w| max |x|; in practice some four bits are lost.
// Tried    -
// Source   S. Winograd, Arithmetic complexity of computations, 1980; A. Lavin & S. Gray, Fast
//          algorithms for convolutional neural networks, 2015.
#include "rung/cpu/foreach_target.hpp"

#include "rung/ops/conv/cpu/detail/winograd-inl.hpp"
#include "rung/ops/conv/shared/cpu/call.hpp"
#include "rung/ops/conv/shared/layer.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::conv_cpu::HWY_NAMESPACE {
void winograd_4(const Conv::Args& args, Context& context) {
  winograd<4>(conv_layer::forward(args), context, context.threads());
}
}  // namespace rung::conv_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung {
namespace conv_cpu {
namespace {
HWY_EXPORT(winograd_4);
void winograd_4_on_this_machine(const Conv::Args& args, Context& context) {
  HWY_DYNAMIC_DISPATCH(winograd_4)(args, context);
}
}  // namespace
}  // namespace conv_cpu

namespace {

double estimate(const Conv::Args& args, const Context& context) {
  return conv_cpu::winograd_seconds(args, 4, context.threads());
}

void run(const Conv::Args& args, Context& context) {
  conv_cpu::winograd_4_on_this_machine(args, context);
}

const Rung<Conv> self{{.name = "winograd_4",
                       .after = "winograd_2",
                       .supports = conv_cpu::takes_winograd,
                       .estimate = estimate,
                       .run = run}};

}  // namespace
}  // namespace rung
#endif
