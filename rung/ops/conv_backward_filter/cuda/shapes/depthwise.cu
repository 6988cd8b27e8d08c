// SPDX-License-Identifier: Apache-2.0
// conv_backward_filter / depthwise
//
// Idea     A filter per channel: its taps are sums of dy times shifted x, within the channel. A
//          thread loops over pixels and adds to all taps, in registers, with one load of dy and one
//          of x per tap. The threads of a block have pixels of one channel or, if channels are
//          contiguous, 32 channels by 8 pixels. Their sums are combined in the order of lanes and
//          warps, and a second kernel adds the slices of pixels.
// Changes  Against warp_per_tap: dy is loaded, and its position computed, once for all taps.
//          Against implicit_gemm: no tiles with 15 of 16 rows empty.
// Cost     k k + 1 loads per k k multiply-adds; all loads of x but one hit L1.
// Limits   f32, f16, bf16; filters of 3 x 3 and 5 x 5, two dimensions, one filter per channel.
#include "rung/device/collectives.hpp"
#include "rung/ops/conv_backward_filter/cuda/detail/slices.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

constexpr int lanes = 32;
constexpr int warps = block_threads / lanes;

template <int Kernel>
struct WarpSums {
  float of[Kernel * Kernel][warps][lanes];
};

template <class T, int Kernel, bool ChannelsInnermost>
__global__ void __launch_bounds__(block_threads)
    conv_backward_filter_depthwise(FilterGradient<T> p) {
  constexpr int taps = Kernel * Kernel;
  auto& shares = shared<WarpSums<Kernel>>().of;
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const int warp = static_cast<int>(threadIdx.x) / lanes;
  const ConvGeometry& g = p.g;
  const ConvAxis& rows = g.axis[1];
  const ConvAxis& columns = g.axis[2];
  const std::int64_t channel =
      ChannelsInnermost ? std::int64_t{blockIdx.x} * lanes + lane : std::int64_t{blockIdx.x};
  const bool exists = channel < g.channels;
  const PixelRange pixels = slice_of(p, blockIdx.y);
  float sums[taps] = {};
  const T* const x = p.x + channel * p.x_strides[1];
  const T* const dy = p.dy + channel * p.dy_strides[1];
  constexpr int together = ChannelsInnermost ? warps : block_threads;
  std::int64_t pixel = pixels.begin + (ChannelsInnermost ? warp : static_cast<int>(threadIdx.x));
  for (; exists && pixel < pixels.end; pixel += together) {
    const Entry at = entry_of_pixel(p, pixel, pixels.end);
    const float result = convert<float>(dy[at.other]);
#pragma unroll
    for (int a = 0; a < Kernel; ++a) {
      const int h = at.h + a * static_cast<int>(rows.dilation);
      const bool has_row = static_cast<unsigned>(h) < static_cast<unsigned>(rows.in);
#pragma unroll
      for (int b = 0; b < Kernel; ++b) {
        const int v = at.v + b * static_cast<int>(columns.dilation);
        if (!has_row || static_cast<unsigned>(v) >= static_cast<unsigned>(columns.in)) continue;
        sums[a * Kernel + b] +=
            result * convert<float>(x[at.image + a * rows.dilation * p.x_strides[3] +
                                      b * columns.dilation * p.x_strides[4]]);
      }
    }
  }
  if constexpr (ChannelsInnermost) {
#pragma unroll
    for (int tap = 0; tap < taps; ++tap) shares[tap][warp][lane] = sums[tap];
  } else {
#pragma unroll
    for (int tap = 0; tap < taps; ++tap) {
      const float of_warp = warp_reduce(sums[tap], [](float a, float b) { return a + b; });
      if (lane == 0) shares[tap][warp][0] = of_warp;
    }
  }
  __syncthreads();
  // One thread per tap and channel adds the sums of the warps, in order.
  constexpr int block_channels = ChannelsInnermost ? lanes : 1;
  const std::int64_t first = std::int64_t{blockIdx.x} * block_channels;
  for (int i = static_cast<int>(threadIdx.x); i < taps * block_channels; i += block_threads) {
    const int tap = i / block_channels;
    const int of_block = i % block_channels;
    if (first + of_block >= g.channels) continue;
    float sum = 0;
    for (int w = 0; w < warps; ++w) sum += shares[tap][w][of_block];
    p.sums[(blockIdx.y * g.channels + first + of_block) * taps + tap] = sum;
  }
}

template <class T>
__global__ void __launch_bounds__(block_threads)
    conv_backward_filter_add_slices(FilterGradient<T> p, std::int64_t count) {
  add_slices<T, false>(p, count);
}

bool channels_innermost(const ConvBackwardFilter::Args& args) {
  return args.x.strides[1] == 1 && args.dy.strides[1] == 1 && args.geometry.channels > 1;
}

/// Number of blocks: four times as many as for tiles of a product, since these blocks are small.
constexpr std::int64_t small_blocks = 4 * two_for_each;

std::int64_t tiles_of(const ConvBackwardFilter::Args& args, bool innermost) {
  return ceil_div(args.geometry.channels, std::int64_t{innermost ? lanes : 1});
}

Support supports(const ConvBackwardFilter::Args& args, const Context&) {
  const ConvGeometry& g = args.geometry;
  if (args.dw.dtype == DType::f64) return unsupported("f32, f16 and bf16");
  if (!is_flat(g)) return unsupported("two dimensions");
  if (g.group_channels() != 1 || g.group_filters() != 1) {
    return unsupported("one filter for each channel");
  }
  const std::int64_t kernel = g.axis[1].kernel;
  if (kernel != g.axis[2].kernel || (kernel != 3 && kernel != 5)) {
    return unsupported("filters of 3 x 3 and 5 x 5");
  }
  if (g.channels > 0xffff) return unsupported("up to 65535 channels");
  return supports_sliced(args, 1);
}

Work work(const ConvBackwardFilter::Args& args, const Context&) {
  const bool innermost = channels_innermost(args);
  const std::int64_t tiles = tiles_of(args, innermost);
  return register_facts(args, tiles, slices_of(args, tiles, small_blocks),
                        innermost ? warps : block_threads);
}

template <class T, int Kernel, bool ChannelsInnermost>
void start(const ConvBackwardFilter::Args& args, Context& context) {
  const std::int64_t tiles = tiles_of(args, ChannelsInnermost);
  const FilterGradient<T> p = sliced<T>(args, context, tiles, small_blocks);
  launch(
      context,
      {.grid = {tiles, p.slices}, .block = block_threads, .shared_bytes = sizeof(WarpSums<Kernel>)},
      conv_backward_filter_depthwise<T, Kernel, ChannelsInnermost>, p);
  launch(context, sum_grid(p), conv_backward_filter_add_slices<T>, p, args.dw.size());
}

void run(const ConvBackwardFilter::Args& args, Context& context) {
  const bool innermost = channels_innermost(args);
  visit<float, f16, bf16>(args.dw.dtype, [&]<class T>() {
    if (args.geometry.axis[1].kernel == 3) {
      return innermost ? start<T, 3, true>(args, context) : start<T, 3, false>(args, context);
    }
    innermost ? start<T, 5, true>(args, context) : start<T, 5, false>(args, context);
  });
}

const Rung<ConvBackwardFilter> self{{.name = "depthwise",
                                     .after = "warp_per_tap",
                                     .backend = device_backend,
                                     .supports = supports,
                                     .work = work,
                                     .run = run}};

}  // namespace
}  // namespace rung
