// SPDX-License-Identifier: Apache-2.0
// conv_backward_data / implicit GEMM by TMA
//
// Idea     with a stride of 1 the gradient is a layer of conv's: dy, with (k - 1) d - p of padding,
//          by filters that are turned around - their last tap first - and whose channels and
//          numbers have changed places. A first kernel writes those filters; conv's
//          implicit_gemm_tma does the rest.
// Changes  against tensor_cores: the copy engine unrolls dy, and wgmma multiplies.
// Cost     w is read and written once more, which is little beside dy; then as conv's.
// Limits   f16 and bf16, channels last, two dimensions at most, a stride of 1; filters of a group
//          in multiples of 8, aligned to 16 bytes; channels too, where there are groups.
// Tried    -
// Source   V. Dumoulin & F. Visin, A guide to convolution arithmetic for deep learning, 2016.
#include "rung/ops/conv/cuda/detail/im2col_tensor.hpp"
#include "rung/ops/conv_backward_data/conv_backward_data.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

constexpr int threads = 256;

/// turned[c][taps in reverse][k of the group], rows of whole 16 bytes; what pads them is never
/// read.
template <class T>
__global__ void __launch_bounds__(threads)
    conv_backward_data_turn_filters(View<const T, 5> w, T* turned, ConvGeometry g,
                                    std::int64_t pitch, std::int64_t count) {
  const std::int64_t step = std::int64_t{gridDim.x} * threads;
  std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  for (; i < count; i += step) {
    std::int64_t rest = i;
    const std::int64_t filter = take_axis(rest, g.group_filters());
    const std::int64_t tap = rest;
    const std::int64_t v = take_axis(rest, g.axis[2].kernel);
    const std::int64_t h = take_axis(rest, g.axis[1].kernel);
    const std::int64_t group = rest / g.group_channels();
    turned[tap * pitch + filter] =
        w(group * g.group_filters() + filter, rest - group * g.group_channels(), 0,
          g.axis[1].kernel - 1 - h, g.axis[2].kernel - 1 - v);
  }
}

/// Elements from a turned filter's tap to the next.
std::int64_t pitch_of(const ConvGeometry& g) {
  return round_up(g.group_filters(), std::int64_t{8});
}

/// The layer of conv's, by filters that are to be written to `turned`.
Conv::Args layer_of(const ConvBackwardData::Args& args, const void* turned) {
  const ConvGeometry& g = args.geometry;
  Conv::Args made;
  made.x = args.dy;
  made.y = args.dx;
  made.axes = args.axes;
  made.geometry = {.images = g.images,
                   .channels = g.filters,
                   .filters = g.channels,
                   .groups = g.groups,
                   .axis = {}};
  for (int axis = 0; axis < 3; ++axis) {
    const ConvAxis& one = g.axis[axis];
    made.geometry.axis[axis] = {.in = one.out,
                                .out = one.in,
                                .kernel = one.kernel,
                                .stride = 1,
                                .padding = (one.kernel - 1) * one.dilation - one.padding,
                                .dilation = one.dilation};
  }
  const std::int64_t pitch = pitch_of(g);
  const std::int64_t across = g.axis[2].kernel;
  made.w = {turned, args.w.dtype,
            Extents{g.channels, g.group_filters(), g.axis[0].kernel, g.axis[1].kernel, across},
            Extents{g.taps() * pitch, 1, g.taps() * pitch, across * pitch, pitch}, args.w.device};
  return made;
}

/// An address that stands for memory that is not there yet; aligned as workspaces are.
const void* stand_in() { return reinterpret_cast<const void*>(std::uintptr_t{4096}); }

Support supports(const ConvBackwardData::Args& args, const Context& context) {
  for (const ConvAxis& axis : args.geometry.axis) {
    if (axis.stride != 1) return unsupported("a stride of 1");
  }
  if (!is_flat(args.geometry)) return unsupported("two dimensions at most");
  if (size_of(args.dx.dtype) != 2) return unsupported("f16 and bf16");
  if (args.dx.empty() || args.dy.empty()) return unsupported("there is nothing to multiply");
  constexpr std::int64_t longest = std::int64_t{1} << 30;
  if (args.geometry.filters > longest || args.geometry.taps() > longest) {
    return unsupported("up to 2^30 filters and taps");
  }
  return supports_im2col_tma(layer_of(args, stand_in()), context);
}

double estimate(const ConvBackwardData::Args& args, const Context& context) {
  Cost turning;
  turning.bytes = 2 * static_cast<double>(args.w.size() * size_of(args.w.dtype));
  return im2col_tma_seconds(layer_of(args, stand_in()), context) +
         estimate_seconds(turning, {.bandwidth = 0.3}, context);
}

void run(const ConvBackwardData::Args& args, Context& context) {
  const ConvGeometry& g = args.geometry;
  const std::int64_t pitch = pitch_of(g);
  const std::size_t partial = im2col_partial_bytes(layer_of(args, stand_in()), context);
  const Extents turned_bytes{g.channels, g.taps(), pitch,
                             static_cast<std::int64_t>(size_of(args.w.dtype))};
  const std::size_t behind = round_up(partial, std::size_t{4096});
  auto* const memory = static_cast<std::byte*>(
      context.workspace(behind + static_cast<std::size_t>(turned_bytes.product())));
  visit<f16, bf16>(args.dx.dtype, [&]<class T>() {
    const std::int64_t count = g.channels * g.taps() * g.group_filters();
    launch(context,
           {.grid = smaller(ceil_div(count, threads), std::int64_t{0x7fffffff}), .block = threads},
           conv_backward_data_turn_filters<T>, args.w.view<const T, 5>(),
           reinterpret_cast<T*>(memory + behind), g, pitch, count);
  });
  run_im2col_tma(layer_of(args, memory + behind), context, memory);
}

const Rung<ConvBackwardData> self{{.name = "implicit_gemm_tma",
                                   .step = 200,
                                   .after = "tensor_cores",
                                   .backend = device_backend,
                                   .supports = supports,
                                   .estimate = estimate,
                                   .run = run}};

}  // namespace
}  // namespace rung
