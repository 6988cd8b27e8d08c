// SPDX-License-Identifier: Apache-2.0
// conv_backward_data / depthwise
//
// Idea     One filter per channel, channels last: no matrix product. The kernel of conv's depthwise
//          computes a vector of channels of dx, each lane with its own weights, eight pixels at a
//          time, one phase after another if the layer is strided.
// Changes  Against transposed_simd: no tiles with 5 of 6 rows and 15 of 16 columns empty. All
//          threads.
// Cost     kh kw loads per vector of dx, from L1; dy from memory once.
// Limits   One filter per channel (C = K = G), channels contiguous, up to 128 taps; f32, f16, bf16.
// Source   F. Chollet, Xception: Deep learning with depthwise separable convolutions, 2017.
#include "rung/ops/conv/shared/cpu/call.hpp"
#include "rung/ops/conv_backward_data/op/layer.hpp"

namespace rung {
namespace {

/// Maximum number of phases, each run on all threads; with larger strides most pixels have no tap.
constexpr std::int64_t max_phases = 64;

Support supports(const ConvBackwardData::Args& args, const Context&) {
  const conv_layer::Gathered g = conv_layer::transposed(args);
  if (g.m != 1 || g.q != 1 || g.groups == 1) return unsupported("one filter for each channel");
  if (!conv_cpu::has_channel_vectors(g)) {
    return unsupported("channels last, f32, f16 or bf16, and up to 128 taps");
  }
  return conv_layer::phases_of(g) <= max_phases ? supported
                                                : unsupported("strides of up to 64 places in all");
}

Work work(const ConvBackwardData::Args& args, const Context& context) {
  const conv_layer::Gathered g = conv_layer::transposed(args);
  const auto phases = static_cast<double>(conv_layer::phases_of(g));
  const auto element = static_cast<std::int64_t>(size_of(g.dtype));
  Work work =
      conv_cpu::channel_vectors_facts(conv_layer::phase_layer(g, 0, element), context.threads());
  work.operations = work.operations * phases;
  work.blocks = work.blocks * phases;
  return work;
}

void run(const ConvBackwardData::Args& args, Context& context) {
  const conv_layer::Gathered g = conv_layer::transposed(args);
  const std::int64_t phases = conv_layer::phases_of(g);
  for (std::int64_t i = 0; i < phases; ++i) {
    conv_cpu::channel_vectors_on(conv_layer::phase_layer(g, i, size_of(g.dtype)), context,
                                 context.threads());
  }
}

const Rung<ConvBackwardData> self{{.name = "depthwise",
                                   .after = "transposed_simd",
                                   .supports = supports,
                                   .work = work,
                                   .run = run}};

}  // namespace
}  // namespace rung
