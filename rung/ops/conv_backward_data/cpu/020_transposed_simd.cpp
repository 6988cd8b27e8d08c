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
#include <cstring>

#include "rung/cpu/isa.hpp"
#include "rung/cpu/team.hpp"
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

/// Zeros in all of dx.
void clear(const conv_layer::Gathered& g, int threads) {
  const auto element = static_cast<std::int64_t>(size_of(g.dtype));
  auto* const dx = static_cast<std::byte*>(g.y);
  const std::int64_t channels = g.groups * g.m;
  const bool last = g.y_strides[1] == 1;
  // A line is a row of a channel or, with channels last, of all of them.
  const std::int64_t lines = g.images * (last ? 1 : channels) * g.axis[0].places * g.axis[1].places;
  const std::int64_t across = g.axis[2].places;
  const auto fill = [&](std::byte* to, std::int64_t count) {
    std::memset(to, 0, static_cast<std::size_t>(count * element));
  };
  cpu::run_team(threads, [&](const cpu::Team& team) {
    const cpu::Range share = team.share(lines);
    for (std::int64_t i = share.begin; i < share.end; ++i) {
      std::int64_t rest = i;
      std::int64_t at = rest % g.axis[1].places * g.y_strides[3];
      rest /= g.axis[1].places;
      at += rest % g.axis[0].places * g.y_strides[2];
      rest /= g.axis[0].places;
      at += last ? rest * g.y_strides[0]
                 : rest / channels * g.y_strides[0] + rest % channels * g.y_strides[1];
      std::byte* const to = dx + at * element;
      const std::int64_t count = last ? channels : 1;
      if (g.y_strides[4] == count) {
        fill(to, across * count);
        continue;
      }
      for (std::int64_t o = 0; o < across; ++o) fill(to + o * g.y_strides[4] * element, count);
    }
  });
}

void transposed_simd(const ConvBackwardData::Args& args, Context& context, int threads) {
  conv_layer::Gathered g = conv_layer::transposed(args);
  const std::int64_t phases = conv_layer::phases_of(g);
  conv_layer::join_axes(g);
  if (phases == 1 || phases > max_phases) {
    conv_cpu::HWY_NAMESPACE::direct(g, context, threads);
    return;
  }
  // With fewer taps than the stride some phases have none.
  bool empty = false;
  conv_layer::for_each_phase(
      g, [&](const conv_layer::Gathered& phase) { empty = empty || phase.terms() == 0; });
  if (empty) clear(g, threads);
  conv_layer::for_each_phase(g, [&](const conv_layer::Gathered& phase) {
    if (phase.terms() != 0) conv_cpu::HWY_NAMESPACE::direct(phase, context, threads);
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
  const double saved = conv_layer::phases_of(layer) == 1 ? conv_cpu::fastest_way(layer).seconds : 0;
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
