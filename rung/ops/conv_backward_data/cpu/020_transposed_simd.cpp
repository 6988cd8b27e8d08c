// SPDX-License-Identifier: Apache-2.0
// conv_backward_data / transposed SIMD
//
// Idea     The gradient is a convolution of dy by w with its axes of channels and filters swapped;
//          tap t of position i reads result (i + p - t d) / s, if that is an integer. Positions of
//          one phase, i mod s, have the same taps, and adjacent positions read adjacent results:
//          each phase is a layer of stride 1 with a subset of the taps, whose dx is s elements
//          apart. conv's tiles compute it: six channels of dx by four vectors of its pixels, from
//          padded planes of dy, gathered panels, or dy in place with channels last.
// Changes  Against naive: 24 sums in registers; no division per term; dy is copied once per phase.
// Cost     The only multiplied zeros are the padding's.
// Limits   None; one thread.
// Source   V. Dumoulin & F. Visin, A guide to convolution arithmetic for deep learning, 2016.
#include <algorithm>
#include <cstring>

#include "rung/cpu/team.hpp"
#include "rung/ops/conv/shared/cpu/call.hpp"
#include "rung/ops/conv/shared/layer.hpp"
#include "rung/ops/conv_backward_data/cpu/detail/call.hpp"
#include "rung/ops/conv_backward_data/op/layer.hpp"

namespace rung {
namespace conv_backward_data_cpu {
namespace {

/// Maximum number of phases that run as separate layers; with larger strides most pixels have no
/// tap.
constexpr std::int64_t max_phases = 256;

/// Sets dx to zero.
void clear(const conv_layer::Gathered& g, int threads) {
  const auto element = static_cast<std::int64_t>(size_of(g.dtype));
  struct Axis {
    std::int64_t places, stride;
  };
  const Axis channels{g.groups * g.m, g.y_strides[1]};
  const bool last = channels.stride == 1;
  Axis axes[5] = {{g.images, g.y_strides[0]}, channels};
  for (int i = 0; i < 3; ++i) axes[i + (last ? 1 : 2)] = {g.axis[i].places, g.y_strides[2 + i]};
  if (last) axes[4] = channels;
  // Contiguous axes form one run.
  int outer = 5;
  std::int64_t run = 1;
  while (outer > 0 && (axes[outer - 1].stride == run || axes[outer - 1].places == 1)) {
    run *= axes[--outer].places;
  }
  std::int64_t runs = 1;
  for (int i = 0; i < outer; ++i) runs *= axes[i].places;
  cpu::run_shares(threads, [&](const cpu::Team& team) {
    const cpu::Range share = team.share(runs);
    for (std::int64_t i = share.begin; i < share.end; ++i) {
      std::int64_t at = 0;
      std::int64_t rest = i;
      for (int axis = outer - 1; axis >= 0; --axis) {
        at += rest % axes[axis].places * axes[axis].stride;
        rest /= axes[axis].places;
      }
      std::memset(static_cast<std::byte*>(g.y) + at * element, 0,
                  static_cast<std::size_t>(run * element));
    }
  });
}

/// Computes a layer by the fastest kernel.
void make_layer(const conv_layer::Gathered& layer, Context& context, int threads) {
  conv_cpu::fastest_way(layer, context).layer_on(layer, context, threads);
}

}  // namespace

void transposed_on(const ConvBackwardData::Args& args, Context& context, int threads) {
  conv_layer::Gathered g = conv_layer::transposed(args);
  const std::int64_t phases = conv_layer::phases_of(g);
  conv_layer::join_axes(g);
  if (phases == 1 || phases > max_phases) {
    make_layer(g, context, threads);
    return;
  }
  // With fewer taps than the stride, some phases have no taps.
  bool empty = false;
  conv_layer::for_each_phase(
      g, [&](const conv_layer::Gathered& phase) { empty = empty || phase.terms() == 0; });
  if (empty) clear(g, threads);
  conv_layer::for_each_phase(g, [&](const conv_layer::Gathered& phase) {
    if (phase.terms() != 0) make_layer(phase, context, threads);
  });
}

/// Returns the work of a layer. The first phase with terms represents all phases, each with the
/// average number of terms.
Work facts(const ConvBackwardData::Args& args, const Context& context, int threads) {
  conv_layer::Gathered g = conv_layer::transposed(args);
  const std::int64_t phases = conv_layer::phases_of(g);
  conv_layer::join_axes(g);
  conv_layer::Gathered layer = g;
  for (std::int64_t i = 0; i < std::min(phases, max_phases) && phases > 1; ++i) {
    layer = conv_layer::phase_layer(g, i, static_cast<std::int64_t>(size_of(g.dtype)));
    if (layer.terms() > 0) break;
  }
  const double products = conv_cpu::products_of(layer);
  const double share = products > 0 ? conv_layer::phase_cost(args).operations / 2 / products : 1;
  Work work = conv_cpu::fastest_facts(layer, context, threads);
  work.operations = work.operations * share;
  work.blocks = work.blocks * share;
  return work;
}
}  // namespace conv_backward_data_cpu

namespace {

Work work(const ConvBackwardData::Args& args, const Context& context) {
  return conv_backward_data_cpu::facts(args, context, 1);
}

void run(const ConvBackwardData::Args& args, Context& context) {
  conv_backward_data_cpu::transposed_on(args, context, 1);
}

const Rung<ConvBackwardData> self{
    {.name = "transposed_simd", .step = 20, .after = "naive", .work = work, .run = run}};

}  // namespace
}  // namespace rung
