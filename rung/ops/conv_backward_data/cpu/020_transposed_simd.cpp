// SPDX-License-Identifier: Apache-2.0
// conv_backward_data / transposed SIMD
//
// Idea     the gradient is a convolution too: of dy, by filters whose channels and numbers have
//          changed places, where tap t of place i is result (i + p - t d) / s, if that is a whole
//          number. Places of one phase, i mod s, have the same taps, neighbours' results are
//          neighbours: each phase is a layer of stride 1 by part of the taps, whose dx lies s
//          elements apart. conv's tiles make it: six channels of dx by four vectors of its pixels,
//          from padded planes of dy, gathered, or in place with channels last.
// Changes  against naive: 24 sums in registers; no division per term; dy is copied once per phase.
// Cost     no zeros are multiplied but the padding's.
// Limits   every valid call; one thread.
// Tried    -
// Source   V. Dumoulin & F. Visin, A guide to convolution arithmetic for deep learning, 2016.
#include "rung/cpu/foreach_target.hpp"

#include <algorithm>

#include "rung/cpu/isa.hpp"
#include "rung/ops/conv/cpu/detail/direct-inl.hpp"
#include "rung/ops/conv/cpu/detail/pixels.hpp"
#include "rung/ops/conv/cpu/detail/terms.hpp"
#include "rung/ops/conv/layer.hpp"
#include "rung/ops/conv_backward_data/cpu/detail/call.hpp"
#include "rung/ops/conv_backward_data/layer.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::conv_backward_data_cpu::HWY_NAMESPACE {

/// As many phases as are worth a team each: with greater strides most pixels meet no tap.
constexpr std::int64_t max_phases = 256;

void transposed_simd(const ConvBackwardData::Args& args, Context& context, int threads) {
  conv_layer::Gathered g = conv_layer::transposed(args);
  const std::int64_t phases = conv_layer::phases_of(g);
  conv_layer::join_axes(g);
  if (phases == 1 || phases > max_phases) {
    conv_cpu::HWY_NAMESPACE::direct(g, context, threads);
    return;
  }
  conv_layer::for_each_phase(g, [&](const conv_layer::Gathered& phase) {
    conv_cpu::HWY_NAMESPACE::direct(phase, context, threads);
  });
}

}  // namespace rung::conv_backward_data_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung {
namespace conv_backward_data_cpu {
HWY_EXPORT(transposed_simd);
void transposed_on(const ConvBackwardData::Args& args, Context& context, int threads) {
  HWY_DYNAMIC_DISPATCH(transposed_simd)(args, context, threads);
}

double seconds(const ConvBackwardData::Args& args, int threads) {
  // Of multiply-adds in full tiles, of gathering a term of a pixel, of a result, and of what a team
  // costs.
  const double rate = cpu::isa() == cpu::Isa::avx512 ? 200e9 : 90e9;
  constexpr double a_result = 0.25e-9, a_start = 0.5e-6, a_thread = 2e-6;
  conv_layer::Gathered layer = conv_layer::transposed(args);
  conv_layer::join_axes(layer);
  const double saved =
      conv_layer::phases_of(layer) == 1 ? conv_cpu::fastest_way(layer).seconds : 0;
  const double a_term = conv_cpu::term_seconds(layer);
  const ConvGeometry& g = args.geometry;
  const double pixels = static_cast<double>(g.images) * static_cast<double>(g.places());
  double terms = static_cast<double>(g.group_filters()) * static_cast<double>(g.taps());
  // A place of a strided layer meets only some of the taps.
  for (const ConvAxis& axis : g.axis) {
    terms /= static_cast<double>(std::min(axis.stride, axis.kernel));
  }
  const double rows = std::max(6.0, static_cast<double>(g.group_channels()));
  const double work = static_cast<double>(g.groups) * pixels *
                      (terms * (rows * 2 / rate + a_term) + rows * a_result);
  const double weights = static_cast<double>(args.w.size()) * 0.5e-9;
  return a_start + (work + saved + weights) / threads + (threads > 1 ? a_thread : 0);
}
}  // namespace conv_backward_data_cpu

namespace {

double estimate(const ConvBackwardData::Args& args, const Context&) {
  return conv_backward_data_cpu::seconds(args, 1);
}

void run(const ConvBackwardData::Args& args, Context& context) {
  conv_backward_data_cpu::transposed_on(args, context, 1);
}

const Rung<ConvBackwardData> self{
    {.name = "transposed_simd", .step = 20, .after = "naive", .estimate = estimate, .run = run}};

}  // namespace
}  // namespace rung
#endif
