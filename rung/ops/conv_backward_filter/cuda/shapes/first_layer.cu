// SPDX-License-Identifier: Apache-2.0
// conv_backward_filter / first layer
//
// Idea     Layers that read an image have one to four channels. A warp computes the gradients of
//          one channel's taps for eight filters: all three rows of 3 x 3 taps, or one row of five
//          or seven. Each lane sums them in registers over four adjacent pixels per tile. A block
//          stages dy and x of a tile as f32, for all channels and up to 16 filters; f32 by
//          cp.async, one tile ahead. Shuffles add the sums of lanes, a second kernel those of
//          slices of the pixels.
// Changes  Against taps_in_registers: a pack of dy, once loaded, serves up to nine taps, and one of
//          x eight filters; 16-bit elements are supported. Against implicit_gemm: no tile has
//          columns for missing terms, and no element of x is decoded per term.
// Cost     With 3 x 3 taps, a lane issues eight wide loads of dy and six of x (nine with stride 2)
//          for 288 multiply-adds. With stride 2, shared memory holds the even columns of x, then
//          the odd ones.
// Limits   3 x 3, 5 x 5 and 7 x 7 taps without dilation, columns of stride 1 or 2, up to 4
//          channels, one group. f32, f16, bf16.
#include "rung/device/collectives.hpp"
#include "rung/device/ptx/async_copy.hpp"
#include "rung/ops/conv_backward_filter/cuda/detail/slices.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

constexpr int warp_lanes = 32;
constexpr int run = 4;           // adjacent pixels per lane
constexpr int warp_filters = 8;  // filters per warp
constexpr int max_channels = 4;
constexpr std::int64_t four_for_each = 2 * two_for_each;
constexpr std::int64_t max_stride = 1 << 10;  // of rows: prevents overflow

/// Tile of the pixels that a block adds at a time, and its staged part of x: a line of `pitch`
/// columns per channel, row and phase; phase i has columns i, i + stride, ...
struct PixelTile {
  int rows, runs;     // of y; a run is four pixels of a row
  int height, pitch;  // of x
  int parts;          // groups of filters per block
  int row_warps;      // groups of rows of taps per block, one warp each per channel and part
  int row_blocks;     // blocks that share the filter's rows of taps
  std::int64_t bands, strips, tasks;
};

constexpr int rows_at_once(int taps) { return taps == 3 ? 3 : 1; }
/// Warps per block, so that the sums fit in registers: two blocks per SM with 3 x 3 taps, else one.
constexpr int max_warps(int taps) { return taps == 3 ? 8 : 21; }
constexpr int blocks_at_once(int taps) { return taps == 3 ? 2 : 1; }

/// Stores an element of global memory, or zero, as f32: floats by asynchronous copies.
template <class T>
__device__ __forceinline__ void stage_element(float* to, const T* from, bool exists) {
  if constexpr (sizeof(T) == 4) {
    ptx::async_copy<4>(to, from, exists ? 4 : 0);
  } else {
    *to = exists ? convert<float>(*from) : 0.0F;
  }
}

/// Stages a tile: dy as [filter][row][column], zero beyond the image and the last filter, and x
/// from row h0 and column v0 on as [channel][row][phase][column], with zeros around the image. A
/// warp copies lines of x, then of dy.
template <int Stride, class T>
__device__ __forceinline__ void stage_tile(const FilterGradient<T>& p, const PixelTile& tile,
                                           float* to, std::int64_t n, std::int64_t first_filter,
                                           std::int64_t o, std::int64_t v, std::int64_t h0,
                                           std::int64_t v0) {
  static_assert(warp_lanes % Stride == 0);
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  const int warps = static_cast<int>(blockDim.x) / warp_lanes;
  const int columns = tile.runs * run;
  const int of_results = tile.parts * warp_filters * tile.rows;
  const int of_image = static_cast<int>(p.g.channels) * tile.height;
  for (int line = static_cast<int>(threadIdx.x) / warp_lanes; line < of_image + of_results;
       line += warps) {
    const T* from = nullptr;
    const T* const somewhere = line < of_image ? p.x : p.dy;
    float* at = nullptr;
    std::int64_t step = 0;  // between lanes
    int count = 0;          // columns, of which [low, high) exist
    int low = 0;
    int high = 0;
    int apart = warp_lanes;  // between a lane's columns in shared memory
    if (line < of_image) {
      const int c = line / tile.height;
      const std::int64_t h = h0 + (line - c * tile.height);
      step = p.x_strides[4];
      from = p.x + n * p.x_strides[0] + c * p.x_strides[1] + h * p.x_strides[3] + v0 * step;
      count = Stride * tile.pitch;
      at = to + of_results * columns + line * count + lane % Stride * tile.pitch + lane / Stride;
      apart = warp_lanes / Stride;
      if (h >= 0 && h < p.g.axis[1].in) {
        low = static_cast<int>(-v0);
        high = static_cast<int>(p.g.axis[2].in - v0);
      }
    } else {
      const int filter = (line - of_image) / tile.rows;
      const std::int64_t oh = o + (line - of_image - filter * tile.rows);
      step = p.dy_strides[4];
      from = p.dy + n * p.dy_strides[0] + (first_filter + filter) * p.dy_strides[1] +
             oh * p.dy_strides[3] + v * step;
      count = columns;
      at = to + (line - of_image) * columns + lane;
      if (first_filter + filter < p.g.filters && oh < p.g.axis[1].out) {
        high = static_cast<int>(p.g.axis[2].out - v);
      }
    }
    from += lane * step;
    for (int column = lane; column < count; column += warp_lanes) {
      const bool exists = column >= low && column < high;
      stage_element(at, exists ? from : somewhere, exists);
      at += apart;
      from += warp_lanes * step;
    }
  }
}

template <class T, int Taps, int Stride>
__global__ void __launch_bounds__(max_warps(Taps) * warp_lanes, blocks_at_once(Taps))
    conv_backward_filter_first_layer(const __grid_constant__ FilterGradient<T> p,
                                     const __grid_constant__ PixelTile tile) {
  constexpr int tap_rows = rows_at_once(Taps);
  const ConvAxis& rows = p.g.axis[1];
  const ConvAxis& columns = p.g.axis[2];
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  const int warp = static_cast<int>(threadIdx.x) / warp_lanes;
  const int part = warp % tile.parts;
  const int channel = warp / tile.parts % static_cast<int>(p.g.channels);
  const int own_rows = warp / (tile.parts * static_cast<int>(p.g.channels)) * tap_rows;
  const int pixels = tile.rows * tile.runs * run;
  const int first_tap = static_cast<int>(blockIdx.x) % tile.row_blocks * tile.row_warps * tap_rows;
  const bool has_taps = first_tap + own_rows < Taps;
  const std::int64_t first_filter =
      std::int64_t{blockIdx.x} / tile.row_blocks * tile.parts * warp_filters;
  constexpr bool ahead = sizeof(T) == 4;  // tiles are copied asynchronously
  const int of_results = tile.parts * warp_filters * pixels;
  const int of_image = static_cast<int>(p.g.channels) * tile.height * Stride * tile.pitch;
  float* const tiles = &shared<float>();

  const int row = lane / tile.runs;
  const int column = lane % tile.runs * run;
  const int own_results = part * warp_filters * pixels + run * lane;
  const int own_image = of_results +
                        (channel * tile.height + row * static_cast<int>(rows.stride) + own_rows) *
                            Stride * tile.pitch +
                        column;

  float sums[tap_rows][Taps][warp_filters] = {};
  const std::int64_t share = ceil_div(tile.tasks, p.slices);
  const std::int64_t begin = smaller(blockIdx.y * share, tile.tasks);
  const std::int64_t end = smaller(begin + share, tile.tasks);
  const auto stage = [&](std::int64_t task) {
    std::int64_t n = task;
    const std::int64_t v = take_axis(n, tile.strips) * tile.runs * run;
    const std::int64_t o = take_axis(n, tile.bands) * tile.rows;
    float* const to = tiles + (ahead ? task % 2 * (of_results + of_image) : 0);
    stage_tile<Stride>(p, tile, to, n, first_filter, o, v,
                       o * rows.stride - rows.padding + first_tap, v * Stride - columns.padding);
  };
  if constexpr (ahead) {
    if (begin < end) stage(begin);
    ptx::async_commit();
  }
  for (std::int64_t task = begin; task < end; ++task) {
    if constexpr (ahead) {
      if (task + 1 < end) stage(task + 1);
      ptx::async_commit();
      ptx::async_wait<1>();
    } else {
      stage(task);
    }
    __syncthreads();
    std::int64_t rest = task;
    const std::int64_t v = take_axis(rest, tile.strips) * tile.runs * run;
    const std::int64_t o = take_axis(rest, tile.bands) * tile.rows;
    const float* const from = tiles + (ahead ? task % 2 * (of_results + of_image) : 0);
    // Pixels that do not exist are left out, not multiplied by zero: x may be infinite there.
    const int valid = has_taps && row < tile.rows && o + row < rows.out
                          ? static_cast<int>(smaller(columns.out - v - column, std::int64_t{run}))
                          : 0;
    const auto multiply = [&](int count) {
#pragma unroll
      for (int a = 0; a < tap_rows; ++a) {
        constexpr int width = round_up(ceil_div(Taps, Stride) - 1 + run, 4);
        Pack<float, width> window[Stride];
#pragma unroll
        for (int phase = 0; phase < Stride; ++phase) {
          window[phase] = load_wide<width>(from + own_image + (a * Stride + phase) * tile.pitch);
        }
#pragma unroll
        for (int f = 0; f < warp_filters; ++f) {
          const Pack<float, run> result = load_wide<run>(from + own_results + f * pixels);
#pragma unroll
          for (int i = 0; i < run; ++i) {
            if (i >= count) continue;
#pragma unroll
            for (int b = 0; b < Taps; ++b) {
              sums[a][b][f] += result[i] * window[b % Stride][i + b / Stride];
            }
          }
        }
      }
    };
    if (valid >= run) {
      multiply(run);
    } else if (valid > 0) {
      multiply(valid);
    }
    __syncthreads();
  }
  if constexpr (ahead) ptx::async_wait<0>();
  if (!has_taps) return;

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
                 (channel * Taps + first_tap + own_rows + a) * Taps + b] = sum;
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
  tile.pitch = static_cast<int>(
      run * tile.runs + round_up(ceil_div(across.kernel, across.stride) - 1, std::int64_t{4}));
  const int warps = max_warps(static_cast<int>(across.kernel));
  const auto groups = static_cast<int>(down.kernel) / tap_rows;
  const auto channels = static_cast<int>(g.channels);
  tile.row_blocks = ceil_div(groups, smaller(groups, warps / channels));
  tile.row_warps = ceil_div(groups, tile.row_blocks);
  tile.parts = g.filters > warp_filters && 2 * channels * tile.row_warps <= warps ? 2 : 1;
  tile.height = static_cast<int>((tile.rows - 1) * down.stride + tile.row_warps * tap_rows);
  tile.tasks = g.images * tile.bands * tile.strips;
  return tile;
}

/// Returns the blocks per slice: groups of filters times groups of rows of taps.
std::int64_t blocks_per_slice(const ConvGeometry& g, const PixelTile& tile) {
  return ceil_div(larger(g.filters, std::int64_t{1}), std::int64_t{tile.parts} * warp_filters) *
         tile.row_blocks;
}

/// Returns the shared memory: two tiles if they are copied ahead.
std::int64_t tile_bytes(const ConvGeometry& g, const PixelTile& tile, std::size_t element) {
  return (element == 4 ? 8 : 4) *
         (std::int64_t{tile.parts} * warp_filters * tile.rows * tile.runs * run +
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
  if (tile_bytes(g, tile, size_of(args.dw.dtype)) >
      static_cast<std::int64_t>(context.info().shared_per_block)) {
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
  const double products = static_cast<double>(blocks) * tile.parts * tile.row_warps * warp_filters *
                          static_cast<double>(g.channels * rows_at_once(static_cast<int>(taps)) *
                                              taps * warp_lanes * run);
  const std::int64_t staged =
      tile.height * g.axis[2].stride * tile.pitch / (tile.parts * tile.row_warps * warp_lanes);
  return {.bytes = ConvBackwardFilter::cost(args).bytes +
                   8 * static_cast<double>(slices) * static_cast<double>(args.dw.size()),
          .operations = 2 * products * static_cast<double>(tile.tasks),
          .launches = 2,
          .blocks = blocks * slices,
          .resident = blocks_at_once(static_cast<int>(taps)),
          .steps = ceil_div(tile.tasks, slices) *
                   (rows_at_once(static_cast<int>(taps)) * taps + staged + 4)};
}

void run_layer(const ConvBackwardFilter::Args& args, Context& context) {
  const ConvGeometry& g = args.geometry;
  const PixelTile tile = pixel_tile(g);
  const std::int64_t blocks = blocks_per_slice(g, tile);
  visit<float, f16, bf16>(args.dw.dtype, [&]<class T>() {
    const FilterGradient<T> p = sliced<T>(args, context, blocks, four_for_each);
    const LaunchShape shape{
        .grid = {blocks, p.slices},
        .block = static_cast<int>(g.channels) * tile.parts * tile.row_warps * warp_lanes,
        .shared_bytes = static_cast<std::size_t>(tile_bytes(g, tile, sizeof(T)))};
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
