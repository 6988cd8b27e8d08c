// SPDX-License-Identifier: Apache-2.0
// conv / direct SIMD
//
// Idea     a matrix product that never sees its second matrix: of x, what 64 pixels need for some
//          128 terms is gathered into L1 when it is needed, and all filters use it there; six
//          filters by four vectors of pixels are summed in registers. With channels last the pixels
//          are the rows, read where they lie, and panels hold packed weights.
// Changes  against im2col_gemm: x is not written out kh kw times; sums stay in registers; every
//          type, stride, group and layout.
// Cost     24 multiply-adds per 4 loads and 6 broadcasts; x is gathered once per 512 filters. A
//          panel that is not full works for nothing.
// Limits   every valid call; one thread. Layers of one filter per group leave 5 of 6 rows empty.
// Tried    -
// Source   K. Chellapilla, S. Puri & P. Simard, High performance convolutional neural networks for
//          document processing, 2006 (im2col); S. Chetlur et al., cuDNN, 2014 (its implicit form).
#include "rung/cpu/foreach_target.hpp"

#include "rung/ops/conv/shared/cpu/call.hpp"
#include "rung/ops/conv/shared/cpu/direct-inl.hpp"
#include "rung/ops/conv/shared/layer.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::conv_cpu::HWY_NAMESPACE {
void direct_simd(const Gathered& g, Context& context, int threads) {
  visit<float, double, f16, bf16>(g.dtype, [&]<class In>() {
    using T = Accumulator<In>;
    // Filters that leave most of a panel empty, however large they are, are not packed.
    const auto packed = static_cast<double>(round_up(g.m, panel_columns<T>) * g.groups) *
                        static_cast<double>(g.terms());
    if (g.y_strides[1] == 1 && g.m >= enough_channels && fits_tensors(g, packed)) {
      run_layer<ChannelColumns<T, In>>(g, context, threads);
    } else {
      run_layer<PixelColumns<T, In>>(g, context, threads);
    }
  });
}
}  // namespace rung::conv_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung {
namespace conv_cpu {
HWY_EXPORT(direct_simd);
void direct_on(const conv_layer::Gathered& layer, Context& context, int threads) {
  HWY_DYNAMIC_DISPATCH(direct_simd)(layer, context, threads);
}
}  // namespace conv_cpu

namespace {

double estimate(const Conv::Args& args, const Context&) { return conv_cpu::seconds(args, 1); }

void run(const Conv::Args& args, Context& context) {
  conv_cpu::direct_on(conv_layer::forward(args), context, 1);
}

const Rung<Conv> self{
    {.name = "direct_simd", .step = 30, .after = "im2col_gemm", .estimate = estimate, .run = run}};

}  // namespace
}  // namespace rung
#endif
