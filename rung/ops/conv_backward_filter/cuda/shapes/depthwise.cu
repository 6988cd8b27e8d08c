// SPDX-License-Identifier: Apache-2.0
// conv_backward_filter / depthwise
//
// Idea     A filter per channel: the gradient of a tap is a sum of dy times shifted x, within the
//          channel. A thread keeps the sums of all taps and the current window of x in registers:
//          it walks down a column of dy and, with stride 1, loads one row of the window per pixel.
//          The threads of a block have columns of one channel or, if channels are contiguous, 32
//          channels by 8 columns.
// Changes  Against warp_per_tap: dy is loaded, and its position computed, once for all taps; with
//          stride 1, x is loaded k times, not k k times. Against implicit_gemm: no tiles with 15 of
//          16 rows empty.
// Cost     Loads per k k multiply-adds: 4 with 3 x 3 taps of stride 1, 2 k + 1 with stride 2,
//          k k + 1 otherwise. The sums are combined in the order of lanes, warps and slices of dy.
// Limits   f32, f16, bf16; filters of 3 x 3, 5 x 5 and 7 x 7, two dimensions, one filter per
//          channel.
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

/// Stores the block's sums of its channels: adds the sums of the threads that have the same
/// channel, in the order of lanes and warps. Called by all threads of the block.
template <int Kernel, bool ChannelsInnermost, class T>
__device__ __forceinline__ void write_sums(const FilterGradient<T>& p,
                                           const float (&sums)[Kernel * Kernel]) {
  constexpr int taps = Kernel * Kernel;
  auto& shares = shared<WarpSums<Kernel>>().of;
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const int warp = static_cast<int>(threadIdx.x) / lanes;
  const ConvGeometry& g = p.g;
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

template <class T, int Kernel, bool ChannelsInnermost>
__global__ void __launch_bounds__(block_threads)
    conv_backward_filter_depthwise(FilterGradient<T> p) {
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const int warp = static_cast<int>(threadIdx.x) / lanes;
  const ConvGeometry& g = p.g;
  const ConvAxis& rows = g.axis[1];
  const ConvAxis& columns = g.axis[2];
  const std::int64_t channel =
      ChannelsInnermost ? std::int64_t{blockIdx.x} * lanes + lane : std::int64_t{blockIdx.x};
  const bool exists = channel < g.channels;
  const PixelRange pixels = slice_of(p, blockIdx.y);
  float sums[Kernel * Kernel] = {};
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
  write_sums<Kernel, ChannelsInnermost>(p, sums);
}

/// Sums the taps over columns of dy: a thread walks down `run` rows of one column, and the window
/// of x slides along in registers, so that each element of a row of x is loaded once per column.
/// For filters without dilation, with the same stride along both axes; offsets within an image have
/// 32 bits.
template <class T, int Kernel, int Stride, bool ChannelsInnermost>
__global__ void __launch_bounds__(block_threads, 2)
    conv_backward_filter_depthwise_runs(const __grid_constant__ FilterGradient<T> p, int run,
                                        std::int64_t count) {
  static_assert(Stride < Kernel);
  const ConvGeometry& g = p.g;
  const ConvAxis& rows = g.axis[1];
  const ConvAxis& columns = g.axis[2];
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const int warp = static_cast<int>(threadIdx.x) / lanes;
  const std::int64_t channel =
      ChannelsInnermost ? std::int64_t{blockIdx.x} * lanes + lane : std::int64_t{blockIdx.x};
  const bool exists = channel < g.channels;
  constexpr int together = ChannelsInnermost ? warps : block_threads;
  const auto down = static_cast<int>(p.x_strides[3]);
  const auto across = static_cast<int>(p.x_strides[4]);
  const std::int64_t share = ceil_div(count, p.slices);
  const std::int64_t end = smaller((blockIdx.y + 1) * share, count);
  float sums[Kernel * Kernel] = {};
  for (std::int64_t i =
           blockIdx.y * share + (ChannelsInnermost ? warp : static_cast<int>(threadIdx.x));
       exists && i < end; i += together) {
    std::int64_t image = i;  // the rest of the index, finally the image
    const auto ow = static_cast<int>(take_axis(image, columns.out));
    const auto first =
        static_cast<int>(take_axis(image, ceil_div(rows.out, std::int64_t{run}))) * run;
    const int last = smaller(first + run, static_cast<int>(rows.out));
    const int v = ow * Stride - static_cast<int>(columns.padding);
    const int h = first * Stride - static_cast<int>(rows.padding);
    const T* const x = in_registers(p.x + channel * p.x_strides[1] + image * p.x_strides[0]);
    const T* dy = in_registers(p.dy + channel * p.dy_strides[1] + image * p.dy_strides[0] +
                               first * p.dy_strides[3] + ow * p.dy_strides[4]);
    bool has_column[Kernel];
#pragma unroll
    for (int b = 0; b < Kernel; ++b) {
      has_column[b] = static_cast<unsigned>(v + b) < static_cast<unsigned>(columns.in);
    }
    float window[Kernel][Kernel];  // row h + r of x is in window[r % Kernel]
    int row = h;                   // next row to load
    int offset = h * down + v * across;
    const auto load_row = [&](float(&to)[Kernel]) {
      const bool has_row = static_cast<unsigned>(row) < static_cast<unsigned>(rows.in);
#pragma unroll
      for (int b = 0; b < Kernel; ++b) {
        to[b] = has_row && has_column[b] ? convert<float>(x[offset + b * across]) : 0.0F;
      }
      ++row;
      offset += down;
    };
#pragma unroll
    for (int a = 0; a < Kernel - Stride; ++a) load_row(window[a]);
    // After Kernel steps the rotation of the window's rows is at its start again.
    for (int start = first; start < last; start += Kernel) {
#pragma unroll
      for (int u = 0; u < Kernel; ++u) {
        if (start + u >= last) break;
#pragma unroll
        for (int a = Kernel - Stride; a < Kernel; ++a) load_row(window[(u * Stride + a) % Kernel]);
        const float result = convert<float>(*dy);
        dy += p.dy_strides[3];
#pragma unroll
        for (int a = 0; a < Kernel; ++a) {
#pragma unroll
          for (int b = 0; b < Kernel; ++b) {
            sums[a * Kernel + b] += result * window[(u * Stride + a) % Kernel][b];
          }
        }
      }
    }
  }
  write_sums<Kernel, ChannelsInnermost>(p, sums);
}

template <class T>
__global__ void __launch_bounds__(block_threads)
    conv_backward_filter_add_slices(FilterGradient<T> p, std::int64_t count) {
  add_slices<T, false>(p, count);
}

bool channels_innermost(const ConvBackwardFilter::Args& args) {
  return args.x.strides[1] == 1 && args.dy.strides[1] == 1 && args.geometry.channels > 1;
}

/// Target number of blocks: four times that of tiled products, since these blocks are small.
constexpr std::int64_t small_blocks = 4 * two_for_each;

std::int64_t tiles_of(const ConvBackwardFilter::Args& args, bool innermost) {
  return ceil_div(args.geometry.channels, std::int64_t{innermost ? lanes : 1});
}

/// Calls f.template operator()<Kernel>() with the extent of the filter; returns false if it is not
/// square or no kernel has its extent.
template <class F>
bool with_kernel(const ConvGeometry& g, F&& f) {
  const std::int64_t kernel = g.axis[1].kernel;
  if (kernel != g.axis[2].kernel) return false;
  if (kernel == 3) f.template operator()<3>();
  if (kernel == 5) f.template operator()<5>();
  if (kernel == 7) f.template operator()<7>();
  return kernel == 3 || kernel == 5 || kernel == 7;
}

/// Partition of dy into runs, parts of a column, for conv_backward_filter_depthwise_runs.
struct Runs {
  int run;  // rows per run
  std::int64_t count;
  std::int64_t slices;
  std::int64_t rounds;  // runs per thread
};
Runs runs_of(const ConvBackwardFilter::Args& args, bool innermost) {
  constexpr std::int64_t longest = 32;
  constexpr std::int64_t shortest = 4;
  const ConvGeometry& g = args.geometry;
  const std::int64_t height = larger(g.axis[1].out, std::int64_t{1});
  const std::int64_t tiles = larger(tiles_of(args, innermost), std::int64_t{1});
  const std::int64_t together = innermost ? warps : block_threads;
  const auto columns_of = [&](std::int64_t run) {
    return larger(g.images * g.axis[2].out * ceil_div(height, run), std::int64_t{1});
  };
  std::int64_t run = ceil_div(height, ceil_div(height, longest));
  // Shorter runs load more rows of x in all, but fill the GPU.
  while (run > shortest && tiles * ceil_div(columns_of(run), together) < two_for_each) {
    run = ceil_div(run, std::int64_t{2});
  }
  Runs runs{.run = static_cast<int>(run), .count = columns_of(run), .slices = 1, .rounds = 1};
  runs.rounds = ceil_div(runs.count * tiles, together * small_blocks);
  runs.slices = ceil_div(runs.count, together * runs.rounds);
  return runs;
}

/// Returns whether conv_backward_filter_depthwise_runs supports the layer. It has no kernels for
/// 5 x 5 and 7 x 7 taps of stride 1, for which depthwise_walks is faster.
bool walks_in_runs(const ConvBackwardFilter::Args& args) {
  const ConvAxis& rows = args.geometry.axis[1];
  const ConvAxis& columns = args.geometry.axis[2];
  const auto reach = [](const ConvAxis& axis, std::int64_t stride) {
    return static_cast<double>(axis.in + 2 * axis.padding) * std::abs(static_cast<double>(stride));
  };
  return rows.stride == columns.stride && rows.stride <= 2 &&
         (rows.stride == 2 || rows.kernel == 3) && rows.dilation == 1 && columns.dilation == 1 &&
         reach(rows, args.x.strides[3]) + reach(columns, args.x.strides[4]) < 0x1p31;
}

Support supports(const ConvBackwardFilter::Args& args, const Context&) {
  const ConvGeometry& g = args.geometry;
  if (args.dw.dtype == DType::f64) return unsupported("f32, f16 and bf16");
  if (!is_flat(g)) return unsupported("two dimensions");
  if (g.group_channels() != 1 || g.group_filters() != 1) {
    return unsupported("one filter for each channel");
  }
  if (!with_kernel(g, []<int>() {})) return unsupported("filters of 3 x 3, 5 x 5 and 7 x 7");
  if (g.channels > 0xffff) return unsupported("up to 65535 channels");
  return supports_sliced(args, 1);
}

Work work(const ConvBackwardFilter::Args& args, const Context&) {
  const ConvGeometry& g = args.geometry;
  const bool innermost = channels_innermost(args);
  const std::int64_t tiles = tiles_of(args, innermost);
  if (!walks_in_runs(args)) {
    return register_facts(args, tiles, slices_of(args, tiles, small_blocks),
                          innermost ? warps : block_threads);
  }
  const Runs runs = runs_of(args, innermost);
  Work work = register_facts(args, tiles, runs.slices, innermost ? warps : block_threads);
  work.resident = g.taps() > 25 ? 2 : g.taps() > 9 ? 4 : 8;
  work.steps = runs.rounds * runs.run * (g.taps() + g.axis[1].kernel * g.axis[1].stride);
  work.path = innermost ? "packed runs" : "runs";
  return work;
}

template <class T, int Kernel, bool ChannelsInnermost>
void start(const ConvBackwardFilter::Args& args, Context& context) {
  const std::int64_t tiles = tiles_of(args, ChannelsInnermost);
  if (walks_in_runs(args)) {
    const Runs runs = runs_of(args, ChannelsInnermost);
    const FilterGradient<T> p = in_slices<T>(args, context, runs.slices);
    auto kernel = conv_backward_filter_depthwise_runs<T, Kernel, 2, ChannelsInnermost>;
    if constexpr (Kernel == 3) {
      if (args.geometry.axis[1].stride == 1) {
        kernel = conv_backward_filter_depthwise_runs<T, 3, 1, ChannelsInnermost>;
      }
    }
    launch(context,
           {.grid = {tiles, p.slices},
            .block = block_threads,
            .shared_bytes = sizeof(WarpSums<Kernel>)},
           kernel, p, runs.run, runs.count);
    return launch(context, sum_grid(p), conv_backward_filter_add_slices<T>, p, args.dw.size());
  }
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
    with_kernel(args.geometry, [&]<int Kernel>() {
      innermost ? start<T, Kernel, true>(args, context) : start<T, Kernel, false>(args, context);
    });
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
