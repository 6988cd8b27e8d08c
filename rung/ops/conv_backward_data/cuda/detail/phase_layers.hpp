// SPDX-License-Identifier: Apache-2.0
// The phases of a gradient as layers of conv, for rungs of conv that can read w backwards.
#pragma once

#include "rung/ops/conv/shared/cuda/layer.hpp"
#include "rung/ops/conv/shared/cuda/tile_facts.hpp"
#include "rung/ops/conv_backward_data/op/layer.hpp"

namespace rung::conv_cuda::inline RUNG_TARGET {

using conv_layer::Gathered;

constexpr std::int64_t max_phase_layers = 16;  // one launch per phase
constexpr int zeros_threads = 256;

// --- on the host ---------------------------------------------------------------------------------

/// Returns a phase as a layer of conv, with w read backwards. If the phase has no terms, only its
/// positions are set. For layers of one group, or of one filter per channel.
inline Conv::Args layer_of_phase(const ConvBackwardData::Args& args, const Gathered& phase) {
  const ConvGeometry& g = args.geometry;
  const auto element = static_cast<std::int64_t>(size_of(args.dx.dtype));
  Conv::Args made;
  made.axes = args.axes;
  made.geometry = {.images = g.images,
                   .channels = g.filters,
                   .filters = g.channels,
                   .groups = g.groups,
                   .axis = {}};
  Extents taps{g.channels, larger(phase.q, std::int64_t{1})};
  Extents of_taps{g.groups == 1 ? phase.w_strides[0] : phase.w_group, phase.w_strides[1]};
  Extents places{g.images, g.channels};
  Extents of_places{phase.y_strides[0], phase.y_strides[1]};
  std::int64_t last = 0;  // offset of the last tap, in elements
  for (int axis = 0; axis < 3; ++axis) {
    const conv_layer::SourceAxis& one = phase.axis[axis];
    const std::int64_t start = one.start + (one.kernel - 1) * one.between;
    made.geometry.axis[axis] = {.in = one.extent,
                                .out = one.places,
                                .kernel = one.kernel,
                                .stride = 1,
                                .padding = -start,
                                .dilation = one.between < 0 ? -one.between : 1};
    last += (one.kernel - 1) * phase.w_strides[2 + axis];
    taps[taps.rank++] = one.kernel;
    of_taps[of_taps.rank++] = -phase.w_strides[2 + axis];
    places[places.rank++] = one.places;
    of_places[of_places.rank++] = phase.y_strides[2 + axis];
  }
  made.x = args.dy;
  made.w = {static_cast<const void*>(static_cast<const std::byte*>(phase.w) + last * element),
            args.w.dtype, taps, of_taps, args.w.device};
  made.y = {phase.y, args.dx.dtype, places, of_places, args.dx.device};
  return made;
}

template <class F>
void for_each_layer(const ConvBackwardData::Args& args, F&& f) {
  conv_layer::for_each_phase(conv_layer::transposed(args), [&](const Gathered& phase) {
    f(layer_of_phase(args, phase), phase.q > 0);
  });
}

/// Returns supported if conv's rung supports all phases.
template <class Supports>
Support supports_phases(const ConvBackwardData::Args& args, Supports&& supports) {
  if (args.dx.empty() || args.dy.empty()) return unsupported("nothing to do");
  if (conv_layer::phases_of(conv_layer::transposed(args)) > max_phase_layers) {
    return unsupported("strides that leave up to 16 phases");
  }
  Support all = supported;
  for_each_layer(args, [&](const Conv::Args& layer, bool) {
    if (all) all = supports(layer);
  });
  return all;
}

/// Returns the work of all phases in sequence; facts(layer) returns the work of one phase with
/// terms.
template <class F>
Work phases_facts(const ConvBackwardData::Args& args, F&& facts) {
  Work all = {.launches = 0};
  for_each_layer(args, [&](const Conv::Args& layer, bool has_terms) {
    if (has_terms) {
      all = in_turn(all, facts(layer));
    } else if (layer.y.size() > 0) {
      all.launches = all.launches + 1;
    }
  });
  all.bytes = 0;
  return all;
}

/// Calls run(layer) for each phase with terms; for the others launches zeros<T>(y, count), a kernel
/// that sets y to zero.
template <class Run, class Zeros>
void run_phases(const ConvBackwardData::Args& args, Context& context, Run&& run, Zeros&& zeros) {
  for_each_layer(args, [&](const Conv::Args& layer, bool has_terms) {
    if (has_terms) return run(layer);
    const std::int64_t count = layer.y.size();
    visit<float, f16, bf16>(layer.y.dtype, [&]<class T>() {
      launch(context,
             {.grid = smaller(ceil_div(count, zeros_threads), std::int64_t{0x7fffffff}),
              .block = zeros_threads},
             zeros.template operator()<T>(), layer.y.view<T, 5>(), count);
    });
  });
}

}  // namespace rung::conv_cuda::inline RUNG_TARGET
