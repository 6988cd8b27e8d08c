// SPDX-License-Identifier: Apache-2.0
// conv / first layer tensor cores
//
// Idea     Layers that read an image have one to four channels. A block stages the rows of x that
//          its pixels need, padded with zeros to four channels per pixel, so that four taps of a
//          row are the 16 terms of one mma.sync, at any stride: two channels of a tap are one word
//          of shared memory. The weights stay in shared memory, in the order of mma's registers.
// Changes  Against small_channels: tensor cores multiply, so that a layer of 16-bit elements is
//          limited by the stores of y. Against implicit_gemm: no element of x is decoded per term.
// Cost     Rows of taps are padded to multiples of four. Filters and pixels are numbered so that a
//          lane holds four adjacent pixels of up to eight adjacent filters, and stores them in
//          packs in either layout.
// Limits   f16 and bf16, up to 4 channels, one group, images of two dimensions; the weights and a
//          tile's rows of x must fit in shared memory. Twice the error bound of f32, as
//          tensor_cores.
#include "rung/device/activate_all.hpp"
#include "rung/device/ptx.hpp"
#include "rung/ops/conv/shared/cuda/layer.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

constexpr int lanes = 32;
constexpr int item_threads = 128;
constexpr int item_warps = item_threads / lanes;
constexpr int item_pixels = 32;  // per warp at a time: four mma of eight columns
constexpr int quad = 4;          // adjacent pixels of a lane; staged channels; taps per step
constexpr int fragment_words = 4 * lanes;
constexpr std::int64_t tile_pixels = 512;
constexpr std::int64_t tile_columns = 128;
constexpr std::int64_t most_extent = 1 << 12;  // of windows and strides: prevents overflow

/// Tile of y that a block computes at a time, and its staged part of x.
struct FirstTile {
  int rows, columns;  // of y; columns in whole quads
  int height, pitch;  // rows and columns of x
  int steps;          // of four taps, per row of taps
  int groups;         // of filters
  std::int64_t bands, strips, tasks;
};

/// Stages the weights: [group][tap down][step][fragment][lane][4], as mma's operand A. Row r of
/// fragment i of a group is filter 2 Fragments (r % 8) + 2 i + r / 8. A thread stages the same word
/// of every fragment.
template <int Fragments, class T>
__device__ __forceinline__ void stage_filters(const Layer<T>& p, const FirstTile& tile,
                                              std::uint32_t* weights) {
  static_assert(item_threads == fragment_words);
  const ConvGeometry& g = p.geometry;
  const int thread = static_cast<int>(threadIdx.x);
  const int e = thread % 4;
  const int lane = thread / 4;
  const int c = lane % 2 * 2;
  const int first_tap = lane % 4 / 2 + e / 2 * 2;
  std::uint32_t* to = weights + thread;
  for (int group = 0; group < tile.groups; ++group) {
    const int filter = (group * 8 + lane / 4) * 2 * Fragments + e % 2;
    for (int down = 0; down < g.axis[1].kernel; ++down) {
      for (int step = 0; step < tile.steps; ++step, to += Fragments * fragment_words) {
        const int tap = first_tap + step * quad;
        Pack<T, 2> pairs[Fragments];
#pragma unroll
        for (int i = 0; i < Fragments; ++i) {
#pragma unroll
          for (int j = 0; j < 2; ++j) {
            const bool exists =
                filter + 2 * i < g.filters && tap < g.axis[2].kernel && c + j < g.channels;
            pairs[i][j] = exists ? p.w(filter + 2 * i, c + j, 0, down, tap) : zero<T>();
          }
        }
#pragma unroll
        for (int i = 0; i < Fragments; ++i) {
          store_wide<2>(reinterpret_cast<T*>(to + i * fragment_words), pairs[i]);
        }
      }
    }
  }
}

/// Stages x of image n from row h0 and column v0 on, with zeros around the image: [row][column][4
/// channels]. A thread has loads of `at_once` pixels in flight.
template <class T>
__device__ __forceinline__ void stage_pixels(const Layer<T>& p, const FirstTile& tile, T* image,
                                             std::int64_t n, std::int64_t h0, std::int64_t v0) {
  constexpr int at_once = 4;
  const ConvAxis& rows = p.geometry.axis[1];
  const ConvAxis& columns = p.geometry.axis[2];
  const int channels = static_cast<int>(p.geometry.channels);
  const int count = tile.height * tile.pitch;
  const int thread = static_cast<int>(threadIdx.x);
  for (int first = thread; first < count; first += at_once * item_threads) {
    Pack<T, quad> values[at_once];
#pragma unroll
    for (int u = 0; u < at_once; ++u) {
      const int i = first + u * item_threads;
      const std::int64_t h = h0 + i / tile.pitch;
      const std::int64_t v = v0 + i % tile.pitch;
      const bool inside = i < count && h >= 0 && h < rows.in && v >= 0 && v < columns.in;
      const T* const from = &p.x(n, 0, 0, inside ? h : 0, inside ? v : 0);
#pragma unroll
      for (int c = 0; c < quad; ++c) {
        values[u][c] = inside && c < channels ? from[c * p.x.strides[1]] : zero<T>();
      }
    }
#pragma unroll
    for (int u = 0; u < at_once; ++u) {
      const int i = first + u * item_threads;
      if (i < count) store_wide<quad>(image + i * quad, values[u]);
    }
  }
}

/// Stores a lane's results: a quad of pixels, of which the first `valid` exist, for its filters
/// from k on. Stores are vectors along the axis that is contiguous in y.
template <int Filters, class T>
__device__ __forceinline__ void store_quad(const Layer<T>& p, T* to, int k, int valid,
                                           const Pack<float, Filters * quad>& sums) {
  const int filters = static_cast<int>(p.geometry.filters) - k;
  Pack<float, Filters* quad> values = sums;
#pragma unroll
  for (int f = 0; f < Filters; ++f) {
    const float bias = p.epilogue.bias_of(k + smaller(f, filters - 1));
#pragma unroll
    for (int i = 0; i < quad; ++i) values[f * quad + i] += bias;
  }
  activate_all<T>(p.epilogue.activation, values);
  const std::int64_t across = p.y.strides[4];
  if (p.y.strides[1] == 1 && across % Filters == 0 && filters >= Filters &&
      is_wide_aligned<T, Filters>(to)) {
#pragma unroll
    for (int i = 0; i < quad; ++i) {
      Pack<T, Filters> pixel;
#pragma unroll
      for (int f = 0; f < Filters; ++f) pixel[f] = convert<T>(values[f * quad + i]);
      if (i < valid) store_wide<Filters>(to + i * across, pixel);
    }
    return;
  }
#pragma unroll
  for (int f = 0; f < Filters; ++f) {
    if (f < filters) {
      T* const at = to + f * p.y.strides[1];
      Pack<T, quad> row;
#pragma unroll
      for (int i = 0; i < quad; ++i) row[i] = convert<T>(values[f * quad + i]);
      if (across == 1 && valid == quad && is_wide_aligned<T, quad>(at)) {
        store_wide<quad>(at, row);
      } else {
#pragma unroll
        for (int i = 0; i < quad; ++i) {
          if (i < valid) at[i * across] = row[i];
        }
      }
    }
  }
}

template <class T, int Fragments>
__global__ void __launch_bounds__(item_threads, 4)
    conv_first_layer_tensor_cores(const __grid_constant__ Layer<T> p,
                                  const __grid_constant__ FirstTile tile) {
  constexpr int columns_of_mma = 8;
  constexpr int products = item_pixels / columns_of_mma;
  constexpr int filters = 2 * Fragments;  // per lane
  const ConvAxis& rows = p.geometry.axis[1];
  const ConvAxis& columns = p.geometry.axis[2];
  const int taps_down = static_cast<int>(rows.kernel);
  const int taps = static_cast<int>(columns.kernel);
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const int group_of_lane = lane / 4;  // as in mma's layouts of registers
  const int t = lane % 4;
  const int group_words = taps_down * tile.steps * Fragments * fragment_words;
  const int pixels = tile.rows * tile.columns;
  const int pieces = ceil_div(pixels, item_pixels);
  // With even strides, products 2 i and 2 i + 1 exchange the second halves of their columns, which
  // avoids bank conflicts.
  const int flips = columns.stride % 2 == 0 ? 1 : 0;
  std::uint32_t* const weights = &shared<std::uint32_t>();
  std::uint32_t* const image = weights + tile.groups * group_words;

  stage_filters<Fragments>(p, tile, weights);
  for (std::int64_t task = blockIdx.x; task < tile.tasks; task += gridDim.x) {
    std::int64_t n = task;
    const std::int64_t first_column = take_axis(n, tile.strips) * tile.columns;
    const std::int64_t first_row = take_axis(n, tile.bands) * tile.rows;
    stage_pixels(p, tile, reinterpret_cast<T*>(image), n, first_row * rows.stride - rows.padding,
                 first_column * columns.stride - columns.padding);
    __syncthreads();
    for (int item = static_cast<int>(threadIdx.x) / lanes; item < tile.groups * pieces;
         item += item_warps) {
      const int group = item / pieces;
      const int first = item % pieces * item_pixels;
      // Column n of product j is pixel 16 (j / 2) + 4 (n / 2) + 2 (j % 2 ^ flip) + n % 2.
      const std::uint32_t* from[products];
#pragma unroll
      for (int j = 0; j < products; ++j) {
        const int pair = j % 2 ^ (flips & group_of_lane / 4);
        const int pixel =
            first + j / 2 * 16 + group_of_lane / 2 * quad + pair * 2 + group_of_lane % 2;
        const int own = smaller(pixel, pixels - 1);
        const int at = own / tile.columns * static_cast<int>(rows.stride) * tile.pitch +
                       own % tile.columns * static_cast<int>(columns.stride);
        from[j] = image + 2 * at + t % 2;
      }
      float sums[Fragments][products][4] = {};
      const std::uint32_t* of_step = weights + group * group_words + 4 * lane;
      for (int a = 0; a < taps_down; ++a) {
        const int row = a * static_cast<int>(rows.dilation) * tile.pitch;
        for (int step = 0; step < tile.steps; ++step) {
          // For a tap that pads the row, x is replaced by zero too: an infinity of x times the zero
          // weight would be NaN.
          const int tap = step * quad + t / 2;
          const bool exists[2] = {tap < taps, tap + 2 < taps};
          int offset[2];
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const int own = smaller(tap + 2 * half, taps - 1);
            offset[half] = 2 * (row + own * static_cast<int>(columns.dilation));
          }
          std::uint32_t weight[Fragments][4];
#pragma unroll
          for (int i = 0; i < Fragments; ++i) {
            const auto four = load_wide<4>(of_step + i * fragment_words);
#pragma unroll
            for (int e = 0; e < 4; ++e) weight[i][e] = four[e];
          }
          of_step += Fragments * fragment_words;
#pragma unroll
          for (int j = 0; j < products; ++j) {
            std::uint32_t values[2];
#pragma unroll
            for (int half = 0; half < 2; ++half) {
              values[half] = exists[half] ? from[j][offset[half]] : 0;
            }
#pragma unroll
            for (int i = 0; i < Fragments; ++i) ptx::mma<T>(sums[i][j], weight[i], values);
          }
        }
      }
      const int k = group * 16 * Fragments + group_of_lane * filters;
#pragma unroll
      for (int j = 0; j < products; j += 2) {
        const int pixel = first + j * columns_of_mma + t * quad;
        const std::int64_t oh = first_row + pixel / tile.columns;
        const std::int64_t ow = first_column + pixel % tile.columns;
        if (pixel >= pixels || k >= p.geometry.filters || oh >= rows.out || ow >= columns.out) {
          continue;
        }
        Pack<float, filters * quad> values;
#pragma unroll
        for (int f = 0; f < filters; ++f) {
#pragma unroll
          for (int i = 0; i < quad; ++i) {
            const int at = f % 2 * 2 + i % 2;
            const float kept = sums[f / 2][j + i / 2][at];
            const float other = sums[f / 2][j + 1 - i / 2][at];
            values[f * quad + i] = (flips & t / 2) != 0 ? other : kept;
          }
        }
        store_quad<filters>(p, &p.y(n, k, 0, oh, ow), k,
                            static_cast<int>(smaller(columns.out - ow, std::int64_t{quad})),
                            values);
      }
    }
    __syncthreads();
  }
}

/// Returns the number of fragments of 16 filters per warp.
int fragments_of(const ConvGeometry& g) { return g.filters <= 16 ? 1 : g.filters <= 32 ? 2 : 4; }

FirstTile first_tile(const ConvGeometry& g) {
  const ConvAxis& down = g.axis[1];
  const ConvAxis& axis = g.axis[2];
  FirstTile tile{};
  tile.groups = static_cast<int>(ceil_div(g.filters, std::int64_t{16} * fragments_of(g)));
  tile.steps = static_cast<int>(ceil_div(axis.kernel, std::int64_t{quad}));
  tile.columns = static_cast<int>(
      round_up(ceil_div(axis.out, ceil_div(axis.out, tile_columns)), std::int64_t{quad}));
  tile.strips = ceil_div(axis.out, std::int64_t{tile.columns});
  tile.pitch =
      static_cast<int>((tile.columns - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1);
  tile.bands = ceil_div(down.out, tile_pixels / tile.columns);
  tile.rows = static_cast<int>(ceil_div(down.out, tile.bands));
  tile.height =
      static_cast<int>((tile.rows - 1) * down.stride + (down.kernel - 1) * down.dilation + 1);
  tile.tasks = g.images * tile.bands * tile.strips;
  return tile;
}

std::int64_t first_layer_bytes(const ConvGeometry& g, const FirstTile& tile) {
  const std::int64_t weights = tile.groups * g.axis[1].kernel * tile.steps * fragments_of(g);
  return 4 * (weights * fragment_words + std::int64_t{2} * tile.height * tile.pitch);
}

std::int64_t resident_blocks(const ConvGeometry& g, const FirstTile& tile) {
  return clamped((std::int64_t{227} << 10) / (first_layer_bytes(g, tile) + (1 << 10)),
                 std::int64_t{1}, std::int64_t{4});
}

std::int64_t grid_of(const ConvGeometry& g, const FirstTile& tile, const Context& context) {
  return smaller(tile.tasks, resident_blocks(g, tile) * context.info().sms);
}

Support supports(const Conv::Args& args, const Context& context) {
  const ConvGeometry& g = args.geometry;
  if (size_of(args.x.dtype) != 2) return unsupported("f16 and bf16");
  if (!is_flat(g) || g.groups != 1) return unsupported("two dimensions and one group");
  if (g.channels < 1 || g.channels > 4) return unsupported("1 to 4 channels");
  bool small = g.filters <= most_extent && g.taps() <= most_extent;
  for (const ConvAxis& axis : {g.axis[1], g.axis[2]}) {
    small = small && axis.stride < most_extent && (axis.kernel - 1) * axis.dilation < most_extent;
  }
  if (!small || first_layer_bytes(g, first_tile(g)) >
                    static_cast<std::int64_t>(context.info().shared_per_block)) {
    return unsupported("all weights and the rows of x that a tile reads must fit in shared memory");
  }
  return supported;
}

/// Returns the work of a layer. A block loops over tiles, and its warps over groups of pixels.
Work work(const Conv::Args& args, const Context& context) {
  const ConvGeometry& g = args.geometry;
  const FirstTile tile = first_tile(g);
  const std::int64_t blocks = grid_of(g, tile, context);
  const std::int64_t items =
      tile.groups * ceil_div(std::int64_t{tile.rows} * tile.columns, item_pixels);
  const std::int64_t steps = g.axis[1].kernel * tile.steps;
  const std::int64_t staged = ceil_div(std::int64_t{tile.height} * tile.pitch, item_threads);
  const double products = 16.0 * fragments_of(g) * item_pixels * 16 * static_cast<double>(steps);
  return {.operations = 2 * products * static_cast<double>(tile.tasks * items),
          .blocks = blocks,
          .resident = resident_blocks(g, tile),
          .rounds = ceil_div(tile.tasks, larger(blocks, std::int64_t{1})) *
                    (staged + ceil_div(items, item_warps) * (steps + quad))};
}

void run(const Conv::Args& args, Context& context) {
  const ConvGeometry& g = args.geometry;
  const FirstTile tile = first_tile(g);
  const LaunchShape shape{.grid = grid_of(g, tile, context),
                          .block = item_threads,
                          .shared_bytes = static_cast<std::size_t>(first_layer_bytes(g, tile))};
  visit<f16, bf16>(args.x.dtype, [&]<class T>() {
    const auto start = [&](auto kernel) {
      launch(context, shape, kernel, layer_of<T>(args), tile);
    };
    switch (fragments_of(g)) {
      case 1:
        return start(conv_first_layer_tensor_cores<T, 1>);
      case 2:
        return start(conv_first_layer_tensor_cores<T, 2>);
      default:
        return start(conv_first_layer_tensor_cores<T, 4>);
    }
  });
}

const Rung<Conv> self{{.name = "first_layer_tensor_cores",
                       .after = "small_channels",
                       .backend = device_backend,
                       .supports = supports,
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
