// SPDX-License-Identifier: Apache-2.0
// conv_backward_data / depthwise
//
// Idea     A filter per channel: each phase of the gradient is a depthwise layer of conv: dy by the
//          filter read backwards, into every stride-th position of dx. Nothing is copied: strides
//          express the reversed taps and the positions.
// Changes  Against implicit_gemm: no tiles with 15 of 16 rows empty.
// Cost     As conv's depthwise; a launch per phase.
// Limits   As conv's depthwise; 16 phases.
// Source   conv / depthwise.
#include "rung/ops/conv/shared/cuda/rungs.hpp"
#include "rung/ops/conv_backward_data/cuda/detail/phase_layers.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

/// Sets dx to zero in a phase without taps: images x channels x depth x rows x columns, every
/// stride-th position of dx along the last three axes.
template <class T>
__global__ void __launch_bounds__(zeros_threads)
    conv_backward_data_depthwise_zeros(View<T, 5> y, std::int64_t count) {
  const std::int64_t step = std::int64_t{gridDim.x} * zeros_threads;
  const bool channels_innermost = y.strides[1] == 1;
  std::int64_t i = std::int64_t{blockIdx.x} * zeros_threads + threadIdx.x;
  for (; i < count; i += step) {
    std::int64_t image = i;
    std::int64_t channel = channels_innermost ? take_channel(image, y.shape[1]) : 0;
    const std::int64_t column = take_axis(image, y.shape[4]);
    const std::int64_t row = take_axis(image, y.shape[3]);
    const std::int64_t depth = take_axis(image, y.shape[2]);
    if (!channels_innermost) channel = take_channel(image, y.shape[1]);
    y(image, channel, depth, row, column) = zero<T>();
  }
}

Support supports(const ConvBackwardData::Args& args, const Context& context) {
  const ConvGeometry& g = args.geometry;
  if (g.group_channels() != 1 || g.group_filters() != 1) {
    return unsupported("one filter for each channel");
  }
  return supports_phases(
      args, [&](const Conv::Args& layer) { return supports_depthwise(layer, context); });
}

Work work(const ConvBackwardData::Args& args, const Context& context) {
  return phases_facts(args, [&](const Conv::Args& layer) {
    return supports_depthwise_walks(layer, context) ? depthwise_walks_facts(layer, context)
                                                    : depthwise_facts(layer, context);
  });
}

void run(const ConvBackwardData::Args& args, Context& context) {
  run_phases(
      args, context,
      [&](const Conv::Args& layer) {
        supports_depthwise_walks(layer, context) ? run_depthwise_walks(layer, context)
                                                 : run_depthwise(layer, context);
      },
      []<class T>() { return conv_backward_data_depthwise_zeros<T>; });
}

const Rung<ConvBackwardData> self{{.name = "depthwise",
                                   .after = "gather",
                                   .backend = device_backend,
                                   .supports = supports,
                                   .work = work,
                                   .run = run}};

}  // namespace
}  // namespace rung
