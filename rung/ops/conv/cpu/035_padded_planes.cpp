// SPDX-License-Identifier: Apache-2.0
// conv / padded planes
//
// Idea     a tap's pixels are the image itself, moved: once the padding stands around a copy of it,
//          no term needs to be gathered. A band of rows that L2 holds is copied for all channels,
//          and six filters by four vectors of pixels are summed in registers from unaligned loads
//          of that copy. With a stride of s the copy is s x s planes of every s-th place.
// Changes  against direct_simd: x is copied once instead of once per tap; weights are packed six
//          filters at a time, so that a tile reads one stream of them.
// Cost     24 multiply-adds per 4 loads, each of two cache lines, and 6 broadcasts. Pixels are
//          counted through the rows of the copy, whose padding is multiplied for nothing: 2 of 58
//          for 3 x 3 on 56 pixels, but 2 of 9 on 7.
// Limits   a tap's rows must be in the copy: filters that span millions of places are left to
//          direct_simd. One thread.
// Tried    -
// Source   J. Zhang, F. Franchetti & T. Low, High performance zero-memory overhead direct
//          convolutions, 2018.
#include "rung/cpu/foreach_target.hpp"

#include "rung/core/context.hpp"
#include "rung/ops/conv/shared/cpu/call.hpp"
#include "rung/ops/conv/shared/cpu/direct-inl.hpp"
#include "rung/ops/conv/shared/cpu/planes.hpp"
#include "rung/ops/conv/shared/layer.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::conv_cpu::HWY_NAMESPACE {
void padded_planes(const Gathered& g, Context& context, int threads) {
  visit<float, double, f16, bf16>(g.dtype, [&]<class In>() {
    run_layer<PlaneColumns<Accumulator<In>, In>>(g, context, threads);
  });
}
}  // namespace rung::conv_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung {
namespace conv_cpu {
HWY_EXPORT(padded_planes);
void planes_on(const conv_layer::Gathered& layer, Context& context, int threads) {
  HWY_DYNAMIC_DISPATCH(padded_planes)(layer, context, threads);
}
}  // namespace conv_cpu

namespace {

Support supports(const Conv::Args& args, const Context&) {
  return conv_cpu::takes_planes(conv_layer::forward(args))
             ? supported
             : unsupported("filters that span more than a band of planes holds");
}

double estimate(const Conv::Args& args, const Context&) {
  const double planes = conv_cpu::planes_seconds(conv_layer::forward(args));
  return planes + conv_cpu::seconds(args, 1);
}

void run(const Conv::Args& args, Context& context) {
  conv_cpu::planes_on(conv_layer::forward(args), context, 1);
}

const Rung<Conv> self{{.name = "padded_planes",
                       .step = 35,
                       .after = "direct_simd",
                       .supports = supports,
                       .estimate = estimate,
                       .run = run}};

}  // namespace
}  // namespace rung
#endif
