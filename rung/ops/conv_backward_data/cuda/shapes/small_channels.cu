// SPDX-License-Identifier: Apache-2.0
// conv_backward_data / small channels
//
// Idea     conv's small_channels for up to four filters: a block stages the part of dy that a tile
//          of dx needs, and all filters, mirrored, in shared memory, and computes all channels of
//          its positions.
// Changes  Against implicit_gemm: no element of dy is decoded or loaded per term.
// Cost     As conv's; a launch per phase of a strided layer.
// Limits   Up to 4 filters, one group, images of two dimensions, 16 phases; the staged elements
//          must fit in shared memory. f32, f16, bf16.
// Source   conv / small_channels.
#include "rung/ops/conv/shared/cuda/rungs.hpp"
#include "rung/ops/conv_backward_data/cuda/detail/phase_layers.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

/// Sets dx to zero in a phase without taps: images x channels x depth x rows x columns, every
/// stride-th position of dx along the last three axes.
template <class T>
__global__ void __launch_bounds__(zeros_threads)
    conv_backward_data_small_channels_zeros(View<T, 5> y, std::int64_t count) {
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
  if (g.groups != 1 || g.filters > 4) return unsupported("up to 4 filters in one group");
  return supports_phases(
      args, [&](const Conv::Args& layer) { return supports_small_channels(layer, context); });
}

Work work(const ConvBackwardData::Args& args, const Context& context) {
  return phases_facts(
      args, [&](const Conv::Args& layer) { return small_channels_facts(layer, context); });
}

void run(const ConvBackwardData::Args& args, Context& context) {
  run_phases(
      args, context, [&](const Conv::Args& layer) { run_small_channels(layer, context); },
      []<class T>() { return conv_backward_data_small_channels_zeros<T>; });
}

const Rung<ConvBackwardData> self{{.name = "small_channels",
                                   .after = "implicit_gemm",
                                   .backend = device_backend,
                                   .supports = supports,
                                   .work = work,
                                   .run = run}};

}  // namespace
}  // namespace rung
