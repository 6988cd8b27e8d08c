// SPDX-License-Identifier: Apache-2.0
// conv_backward_filter / first layer
//
// Idea     Layers that read an image have one to four channels. A warp computes the gradients of
//          one channel's taps for eight filters: all three rows of 3 x 3 taps, or one row of five
//          or seven. Each lane sums them in registers over four adjacent pixels per tile. A block
//          stages dy and x of a tile as f32, for all channels and up to 16 filters. Shuffles add
//          the sums of lanes, a second kernel those of slices of the pixels.
// Changes  Against taps_in_registers: a pack of dy, once loaded, serves up to nine taps, and one of
//          x eight filters; 16-bit elements are supported. Against implicit_gemm: no tile has
//          columns for missing terms, and no element of x is decoded per term.
// Cost     With 3 x 3 taps, a lane issues eight wide loads of dy and six of x (nine with stride 2)
//          for 288 multiply-adds. With stride 2, shared memory holds the even columns of x, then
//          the odd ones.
// Limits   3 x 3, 5 x 5 and 7 x 7 taps without dilation, columns of stride 1 or 2, up to 4
//          channels, one group. f32, f16, bf16.
#include "rung/device/collectives.hpp"
#include "rung/ops/conv_backward_filter/cuda/detail/slices.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

constexpr int warp_lanes = 32;
constexpr int run = 4;           // adjacent pixels per lane
constexpr int warp_filters = 8;  // filters per warp
constexpr int max_parts = 2;     // warps per channel
constexpr int max_channels = 4;
constexpr std::int64_t four_for_each = 2 * two_for_each;
constexpr std::int64_t max_stride = 1 << 10;  // of rows: prevents overflow

/// Tile of the pixels that a block adds at a time, and its staged part of x: a line of `pitch`
/// columns per channel, row and phase; phase i has columns i, i + stride, ...
struct PixelTile {
  int rows, runs;     // of y; a run is four pixels of a row
  int height, pitch;  // of x
  int parts;          // warps per channel
  int row_groups;     // of the filter's rows of taps
  std::int64_t bands, strips, tasks;
};

constexpr int rows_at_once(int taps) { return taps == 3 ? 3 : 1; }

/// Stages dy of a tile, zero beyond the image and the last filter: [filter][row][column].
template <class T>
__device__ __forceinline__ void stage_results(const FilterGradient<T>& p, const PixelTile& tile,
                                              float* to, std::int64_t n, std::int64_t first_filter,
                                              std::int64_t o, std::int64_t v) {
  const int columns = tile.runs * run;
  const int pixels = tile.rows * columns;
  const std::int64_t step = p.dy_strides[1];
  for (int i = static_cast<int>(threadIdx.x); i < tile.parts * pixels;
       i += static_cast<int>(blockDim.x)) {
    const int part = i / pixels;
    const int pixel = i % pixels;
    const std::int64_t oh = o + pixel / columns;
    const std::int64_t ow = v + pixel % columns;
    const std::int64_t k = first_filter + part * warp_filters;
    const bool inside = oh < p.g.axis[1].out && ow < p.g.axis[2].out;
    const T* const from =
        p.dy + n * p.dy_strides[0] + k * step + oh * p.dy_strides[3] + ow * p.dy_strides[4];
    Pack<float, warp_filters> values;
    if (inside && step == 1 && k + warp_filters <= p.g.filters &&
        is_wide_aligned<T, warp_filters>(from)) {
      values = convert<float>(load_wide<warp_filters>(from));
    } else {
#pragma unroll
      for (int f = 0; f < warp_filters; ++f) {
        values[f] = inside && k + f < p.g.filters ? convert<float>(from[f * step]) : 0.0F;
      }
    }
#pragma unroll
    for (int f = 0; f < warp_filters; ++f)
      to[(part * warp_filters + f) * pixels + pixel] = values[f];
  }
}

/// Stages x of a tile from row h0 and column v0 on, with zeros around the image:
/// [channel][row][phase][column].
template <int Stride, class T>
__device__ __forceinline__ void stage_image(const FilterGradient<T>& p, const PixelTile& tile,
                                            float* to, std::int64_t n, std::int64_t h0,
                                            std::int64_t v0) {
  const int line = Stride * tile.pitch;
  const int count = tile.height * line;
  const int channels = static_cast<int>(p.g.channels);
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) {
    const int row = i / line;
    const int column = i % line;
    const std::int64_t h = h0 + row;
    const std::int64_t v = v0 + column;
    const bool inside = h >= 0 && h < p.g.axis[1].in && v >= 0 && v < p.g.axis[2].in;
    const T* const from =
        p.x + (inside ? n * p.x_strides[0] + h * p.x_strides[3] + v * p.x_strides[4] : 0);
    float values[max_channels];
#pragma unroll
    for (int c = 0; c < max_channels; ++c) {
      values[c] = inside && c < channels ? convert<float>(from[c * p.x_strides[1]]) : 0.0F;
    }
    float* const at = to + row * line + column % Stride * tile.pitch + column / Stride;
#pragma unroll
    for (int c = 0; c < max_channels; ++c) {
      if (c < channels) at[c * count] = values[c];
    }
  }
}

template <class T, int Taps, int Stride>
__global__ void __launch_bounds__(max_parts* max_channels* warp_lanes, 2)
    conv_backward_filter_first_layer(const __grid_constant__ FilterGradient<T> p,
                                     const __grid_constant__ PixelTile tile) {
  constexpr int tap_rows = rows_at_once(Taps);
  const ConvAxis& rows = p.g.axis[1];
  const ConvAxis& columns = p.g.axis[2];
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  const int warp = static_cast<int>(threadIdx.x) / warp_lanes;
  const int part = warp % tile.parts;
  const int channel = warp / tile.parts;
  const int pixels = tile.rows * tile.runs * run;
  const int first_tap = static_cast<int>(blockIdx.x) % tile.row_groups * tap_rows;
  const std::int64_t first_filter =
      std::int64_t{blockIdx.x} / tile.row_groups * tile.parts * warp_filters;
  float* const results = &shared<float>();
  float* const image = results + tile.parts * warp_filters * pixels;

  const int row = lane / tile.runs;
  const int column = lane % tile.runs * run;
  const float* const own_results = results + part * warp_filters * pixels + run * lane;
  const float* const own_image =
      image + (channel * tile.height + row * static_cast<int>(rows.stride)) * Stride * tile.pitch +
      column;

  float sums[tap_rows][Taps][warp_filters] = {};
  const std::int64_t share = ceil_div(tile.tasks, p.slices);
  const std::int64_t begin = smaller(blockIdx.y * share, tile.tasks);
  const std::int64_t end = smaller(begin + share, tile.tasks);
  for (std::int64_t task = begin; task < end; ++task) {
    std::int64_t n = task;
    const std::int64_t v = take_axis(n, tile.strips) * tile.runs * run;
    const std::int64_t o = take_axis(n, tile.bands) * tile.rows;
    stage_results(p, tile, results, n, first_filter, o, v);
    stage_image<Stride>(p, tile, image, n, o * rows.stride - rows.padding + first_tap,
                        v * Stride - columns.padding);
    __syncthreads();
    // Pixels that do not exist are left out, not multiplied by zero: x may be infinite there.
    const int valid = row < tile.rows && o + row < rows.out
                          ? static_cast<int>(smaller(columns.out - v - column, std::int64_t{run}))
                          : 0;
    if (valid > 0) {
      Pack<float, run> result[warp_filters];
#pragma unroll
      for (int f = 0; f < warp_filters; ++f) result[f] = load_wide<run>(own_results + f * pixels);
#pragma unroll
      for (int a = 0; a < tap_rows; ++a) {
#pragma unroll
        for (int phase = 0; phase < Stride; ++phase) {
          constexpr int width = round_up(ceil_div(Taps, Stride) - 1 + run, 4);
          const Pack<float, width> window =
              load_wide<width>(own_image + (a * Stride + phase) * tile.pitch);
#pragma unroll
          for (int i = 0; i < run; ++i) {
            if (i < valid) {
#pragma unroll
              for (int b = phase; b < Taps; b += Stride) {
#pragma unroll
                for (int f = 0; f < warp_filters; ++f) {
                  sums[a][b][f] += result[f][i] * window[i + b / Stride];
                }
              }
            }
          }
        }
      }
    }
    __syncthreads();
  }

#pragma unroll
  for (int a = 0; a < tap_rows; ++a) {
#pragma unroll
    for (int b = 0; b < Taps; ++b) {
#pragma unroll
      for (int f = 0; f < warp_filters; ++f) {
        const float sum =
            warp_reduce(sums[a][b][f], [](float one, float two) { return one + two; });
        const std::int64_t filter = first_filter + part * warp_filters + f;
        if (lane == 0 && filter < p.g.filters) {
          p.sums[(blockIdx.y * p.g.filters + filter) * p.terms +
                 (channel * Taps + first_tap + a) * Taps + b] = sum;
        }
      }
    }
  }
}

template <class T>
__global__ void __launch_bounds__(block_threads)
    conv_backward_filter_first_layer_add_slices(FilterGradient<T> p, std::int64_t count) {
  add_slices<T, false>(p, count);
}

// --- on the host ---------------------------------------------------------------------------------

PixelTile pixel_tile(const ConvGeometry& g) {
  const ConvAxis& down = g.axis[1];
  const ConvAxis& across = g.axis[2];
  const int tap_rows = rows_at_once(static_cast<int>(across.kernel));
  PixelTile tile{};
  const std::int64_t runs = ceil_div(across.out, std::int64_t{run});
  tile.runs = static_cast<int>(ceil_div(runs, ceil_div(runs, std::int64_t{warp_lanes})));
  tile.strips = ceil_div(runs, std::int64_t{tile.runs});
  tile.bands = ceil_div(down.out, std::int64_t{warp_lanes / tile.runs});
  tile.rows = static_cast<int>(ceil_div(down.out, tile.bands));
  tile.height = static_cast<int>((tile.rows - 1) * down.stride + tap_rows);
  tile.pitch = static_cast<int>(
      run * tile.runs + round_up(ceil_div(across.kernel, across.stride) - 1, std::int64_t{4}));
  tile.parts = static_cast<int>(clamped(ceil_div(g.filters, std::int64_t{warp_filters}),
                                        std::int64_t{1}, std::int64_t{max_parts}));
  tile.row_groups = static_cast<int>(down.kernel / tap_rows);
  tile.tasks = g.images * tile.bands * tile.strips;
  return tile;
}

/// Returns the blocks per slice: groups of filters times groups of rows of taps.
std::int64_t blocks_per_slice(const ConvGeometry& g, const PixelTile& tile) {
  return ceil_div(larger(g.filters, std::int64_t{1}), std::int64_t{tile.parts} * warp_filters) *
         tile.row_groups;
}

std::int64_t tile_bytes(const ConvGeometry& g, const PixelTile& tile) {
  return 4 * (std::int64_t{tile.parts} * warp_filters * tile.rows * tile.runs * run +
              g.channels * tile.height * g.axis[2].stride * tile.pitch);
}

Support supports_layer(const ConvBackwardFilter::Args& args, const Context& context) {
  const ConvGeometry& g = args.geometry;
  const ConvAxis& rows = g.axis[1];
  const ConvAxis& columns = g.axis[2];
  if (args.dw.dtype == DType::f64) return unsupported("f32, f16 and bf16");
  if (!is_flat(g) || g.groups != 1) return unsupported("two dimensions and one group");
  if (g.channels < 1 || g.channels > max_channels) return unsupported("1 to 4 channels");
  if (rows.kernel != columns.kernel ||
      (columns.kernel != 3 && columns.kernel != 5 && columns.kernel != 7)) {
    return unsupported("3 x 3, 5 x 5 or 7 x 7 taps");
  }
  if (rows.dilation != 1 || columns.dilation != 1) return unsupported("no dilation");
  if (columns.stride > 2 || rows.stride > max_stride) {
    return unsupported("columns of stride 1 or 2, rows of up to 1024");
  }
  const PixelTile tile = pixel_tile(g);
  if (tile_bytes(g, tile) > static_cast<std::int64_t>(context.info().shared_per_block)) {
    return unsupported("the rows of x that a tile reads must fit in shared memory");
  }
  if (blocks_per_slice(g, tile) > 0x7fffffff) return unsupported("up to 2^31 - 1 blocks per slice");
  return supports_sliced(args, larger(g.filters, std::int64_t{1}));
}

/// Returns the work of a layer. The slices fill the GPU, so a block's tiles count as steps.
Work work_of_layer(const ConvBackwardFilter::Args& args, const Context&) {
  const ConvGeometry& g = args.geometry;
  const PixelTile tile = pixel_tile(g);
  const std::int64_t blocks = blocks_per_slice(g, tile);
  const std::int64_t slices = slices_of(args, blocks, four_for_each);
  const std::int64_t taps = g.axis[2].kernel;
  const double products = static_cast<double>(blocks) * tile.parts * warp_filters *
                          static_cast<double>(g.channels * rows_at_once(static_cast<int>(taps)) *
                                              taps * warp_lanes * run);
  const std::int64_t staged =
      tile.height * g.axis[2].stride * tile.pitch / (g.channels * tile.parts * warp_lanes);
  return {.bytes = ConvBackwardFilter::cost(args).bytes +
                   8 * static_cast<double>(slices) * static_cast<double>(args.dw.size()),
          .operations = 2 * products * static_cast<double>(tile.tasks),
          .launches = 2,
          .blocks = blocks * slices,
          .resident = 2,
          .steps = ceil_div(tile.tasks, slices) *
                   (rows_at_once(static_cast<int>(taps)) * taps + staged + 4)};
}

void run_layer(const ConvBackwardFilter::Args& args, Context& context) {
  const ConvGeometry& g = args.geometry;
  const PixelTile tile = pixel_tile(g);
  const std::int64_t blocks = blocks_per_slice(g, tile);
  visit<float, f16, bf16>(args.dw.dtype, [&]<class T>() {
    const FilterGradient<T> p = sliced<T>(args, context, blocks, four_for_each);
    const LaunchShape shape{.grid = {blocks, p.slices},
                            .block = static_cast<int>(g.channels) * tile.parts * warp_lanes,
                            .shared_bytes = static_cast<std::size_t>(tile_bytes(g, tile))};
    const auto with_taps = [&]<int Taps>() {
      if (g.axis[2].kernel != Taps) return;
      if (g.axis[2].stride == 1) {
        launch(context, shape, conv_backward_filter_first_layer<T, Taps, 1>, p, tile);
      } else {
        launch(context, shape, conv_backward_filter_first_layer<T, Taps, 2>, p, tile);
      }
    };
    with_taps.template operator()<3>();
    with_taps.template operator()<5>();
    with_taps.template operator()<7>();
    launch(context, sum_grid(p), conv_backward_filter_first_layer_add_slices<T>, p, args.dw.size());
  });
}

const Rung<ConvBackwardFilter> self{{.name = "first_layer",
                                     .after = "taps_in_registers",
                                     .backend = device_backend,
                                     .supports = supports_layer,
                                     .work = work_of_layer,
                                     .run = run_layer}};

}  // namespace
}  // namespace rung
