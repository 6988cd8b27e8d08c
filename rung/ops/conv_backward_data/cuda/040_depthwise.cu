// SPDX-License-Identifier: Apache-2.0
// conv_backward_data / depthwise
//
// Idea     a filter per channel: each phase of the gradient is a depthwise layer of conv's, of dy,
//          by the filter read backwards, into every stride-th place of dx. Nothing is copied for
//          it: taps and places are strides.
// Changes  against implicit_gemm: no tiles with 15 of 16 rows empty.
// Cost     as conv's depthwise; a launch per phase.
// Limits   as conv's depthwise; 16 phases.
// Tried    -
// Source   conv / depthwise.
#include "rung/ops/conv/cuda/detail/depthwise.hpp"
#include "rung/ops/conv_backward_data/layer.hpp"

namespace rung {
namespace {

using namespace conv_cuda;
using conv_layer::Gathered;

constexpr int threads = 256;
constexpr std::int64_t max_phases = 16;

/// A phase that no tap meets.
template <class T>
__global__ void __launch_bounds__(threads)
    conv_backward_data_depthwise_zeros(View<T, 5> dx, std::int64_t count) {
  const std::int64_t step = std::int64_t{gridDim.x} * threads;
  std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  for (; i < count; i += step) {
    const Place at = place_of(dx, i, dx.strides[1] == 1);
    dx(at.n, at.c, at.d, at.h, at.w) = zero<T>();
  }
}

/// A phase as conv's layer, or, without terms, its places alone.
Conv::Args layer_of(const ConvBackwardData::Args& args, const Gathered& phase) {
  const ConvGeometry& g = args.geometry;
  const auto element = static_cast<std::int64_t>(size_of(args.dx.dtype));
  Conv::Args made;
  made.axes = args.axes;
  made.geometry = {.images = g.images,
                   .channels = g.filters,
                   .filters = g.channels,
                   .groups = g.groups,
                   .axis = {}};
  Extents taps{g.channels, 1};
  Extents of_taps{phase.w_group, 1};
  Extents places{g.images, g.channels};
  Extents of_places{phase.y_strides[0], phase.y_strides[1]};
  std::int64_t last = 0;  // tap, in elements from the first
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
  conv_layer::for_each_phase(conv_layer::transposed(args),
                             [&](const Gathered& phase) { f(layer_of(args, phase), phase.q > 0); });
}

Support supports(const ConvBackwardData::Args& args, const Context& context) {
  const ConvGeometry& g = args.geometry;
  if (g.group_channels() != 1 || g.group_filters() != 1) {
    return unsupported("one filter for each channel");
  }
  if (args.dx.empty() || args.dy.empty()) return unsupported("nothing to do");
  if (conv_layer::phases_of(conv_layer::transposed(args)) > max_phases) {
    return unsupported("strides that leave up to 16 phases");
  }
  Support all = supported;
  for_each_layer(args, [&](const Conv::Args& layer, bool) {
    if (all) all = supports_depthwise(layer, context);
  });
  return all;
}

double estimate(const ConvBackwardData::Args& args, const Context& context) {
  double seconds = 0;
  for_each_layer(
      args, [&](const Conv::Args& layer, bool) { seconds += depthwise_seconds(layer, context); });
  return seconds;
}

void run(const ConvBackwardData::Args& args, Context& context) {
  for_each_layer(args, [&](const Conv::Args& layer, bool has_terms) {
    if (has_terms) return run_depthwise(layer, context);
    const std::int64_t count = layer.y.size();
    visit<float, f16, bf16>(layer.y.dtype, [&]<class T>() {
      launch(
          context,
          {.grid = smaller(ceil_div(count, threads), std::int64_t{0x7fffffff}), .block = threads},
          conv_backward_data_depthwise_zeros<T>, layer.y.view<T, 5>(), count);
    });
  });
}

const Rung<ConvBackwardData> self{{.name = "depthwise",
                                   .step = 40,
                                   .after = "gather",
                                   .backend = device_backend,
                                   .supports = supports,
                                   .estimate = estimate,
                                   .run = run}};

}  // namespace
}  // namespace rung
