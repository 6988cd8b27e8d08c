// SPDX-License-Identifier: Apache-2.0
// conv_backward_data / transposed SIMD
//
// Idea     the gradient is a convolution too: of dy, by filters whose channels and numbers have
//          changed places, where tap t of place i is result (i + p - t d) / s, if that is a whole
//          number. Places of one phase, i mod s, have the same taps, neighbors' results are
//          neighbors: each phase is a layer of stride 1 by part of the taps, whose dx lies s
//          elements apart. conv's tiles make it: six channels of dx by four vectors of its pixels,
//          from padded planes of dy, gathered, or in place with channels last.
// Changes  against naive: 24 sums in registers; no division per term; dy is copied once per phase.
// Cost     no zeros are multiplied but the padding's.
// Limits   every valid call; one thread.
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

/// As many phases as are worth a team each: with greater strides most pixels meet no tap.
constexpr std::int64_t max_phases = 256;

/// Zeros in all of dx.
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
  // What is contiguous is one run.
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

/// In the fastest way.
void make_layer(const conv_layer::Gathered& layer, Context& context, int threads) {
  conv_cpu::fastest_way(layer).layer_on(layer, context, threads);
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
  // With fewer taps than the stride some phases have none.
  bool empty = false;
  conv_layer::for_each_phase(
      g, [&](const conv_layer::Gathered& phase) { empty = empty || phase.terms() == 0; });
  if (empty) clear(g, threads);
  conv_layer::for_each_phase(g, [&](const conv_layer::Gathered& phase) {
    if (phase.terms() != 0) make_layer(phase, context, threads);
  });
}

double seconds(const ConvBackwardData::Args& args, int threads) {
  constexpr double a_start = 0.5e-6, a_thread = 2e-6, a_weight = 0.5e-9, a_cleared = 0.1e-9;
  conv_layer::Gathered g = conv_layer::transposed(args);
  const std::int64_t phases = conv_layer::phases_of(g);
  conv_layer::join_axes(g);
  const double weights = static_cast<double>(args.w.size()) * a_weight;
  double work = weights;
  const auto add = [&](const conv_layer::Gathered& layer) {
    work +=
        layer.terms() == 0
            ? static_cast<double>(layer.pixels() * layer.groups * layer.m) * a_cleared
            : a_start + conv_cpu::gathering_seconds(layer) + conv_cpu::fastest_way(layer).seconds;
  };
  // Phases are much alike: of many the first stands for all.
  constexpr std::int64_t few_phases = 4;
  if (phases == 1) {
    add(g);
  } else if (phases <= few_phases) {
    conv_layer::for_each_phase(g, add);
  } else {
    add(conv_layer::phase_layer(g, 0, static_cast<std::int64_t>(size_of(g.dtype))));
    work = weights + (work - weights) * static_cast<double>(phases);
  }
  return work / threads + (threads > 1 ? a_thread : 0);
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
