// SPDX-License-Identifier: Apache-2.0
// conv_backward_data / first layer
//
// Idea     Layers that read an image have one to four channels. A thread computes all channels of
//          two rows by four or eight columns of dx in registers, of all phases of the stride, so
//          that an element of dy, once loaded, is multiplied by all its taps. A block stages dy and
//          the weights of eight filters at a time in shared memory, as f32.
// Changes  Against implicit_gemm: no tile has rows for missing channels, no phase has its own
//          launch or its own partial tiles, and no element of dy is decoded per term.
// Cost     Per thread and filter, with three channels and 3 x 3 taps of stride 2: four wide loads
//          of dy and nine of weights, broadcast to all lanes, for 108 multiply-adds. The halo of dy
//          is staged by several blocks.
// Limits   Up to 4 channels, one group, images of two dimensions, columns of stride 1 or 2, no
//          dilation. f32, f16, bf16.
#include "rung/ops/conv/shared/cuda/layer.hpp"
#include "rung/ops/conv_backward_data/op/conv_backward_data.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

constexpr int max_threads = 128;
constexpr int cells = 4;      // per thread, in a row; a cell has one column of dx per phase
constexpr int row_pair = 2;   // rows of dx per thread
constexpr int chunk = 8;      // filters staged at a time
constexpr int long_taps = 4;  // taps per window if a row of taps has several windows
constexpr std::int64_t max_extent = 1 << 12;  // of filters and strides: prevents overflow

/// Tile of dx that a block computes, and its staged part of dy.
///
/// Row h of dx is row u = h + padding of the padded image; row o of dy contributes, by tap t, to
/// row u = stride o + t. Columns likewise, but `shift` empty slots in front of a row's taps
/// align the thread's first column with a cell: slot = tap + shift.
struct DxTile {
  int across, down;   // threads of a block
  int taps, windows;  // taps per phase and window; windows per row of taps
  int shift;
  int height, pitch;  // rows and columns of dy, per filter
  std::int64_t bands, strips;
};

/// Returns a / b, rounded up; b is positive, a may be negative.
__device__ __forceinline__ std::int64_t ceil_quotient(std::int64_t a, std::int64_t b) {
  return a < 0 ? -(-a / b) : ceil_div(a, b);
}

/// Returns the fewest taps per phase for which a kernel is compiled; others exist for one and two
/// more.
constexpr int least_taps(std::int64_t stride) { return stride == 1 ? 3 : 2; }

/// Returns the number of floats of a window's weights, [tap][phase][channel], rounded up to whole
/// packs.
RUNG_HD constexpr int window_weights(int channels, int stride, int taps) {
  return round_up(taps * stride * channels, 4);
}

/// Stages dy of a chunk of filters, from row `o` and column `v` on, with zeros around the image:
/// [filter][row][column].
template <class T>
__device__ __forceinline__ void stage_dy(const View<const T, 5>& dy, const ConvGeometry& g,
                                         const DxTile& tile, float* image, std::int64_t n,
                                         int first, std::int64_t o, std::int64_t v) {
  const int positions = tile.height * tile.pitch;
  const int filters = smaller(static_cast<int>(g.filters) - first, chunk);
  const std::int64_t step = dy.strides[1];
  for (int i = static_cast<int>(threadIdx.x); i < positions; i += static_cast<int>(blockDim.x)) {
    const std::int64_t oh = o + i / tile.pitch;
    const std::int64_t ow = v + i % tile.pitch;
    const bool inside = oh >= 0 && oh < g.axis[1].out && ow >= 0 && ow < g.axis[2].out;
    const T* const from = &dy(n, first, 0, inside ? oh : 0, inside ? ow : 0);
    Pack<float, chunk> values;
    if (step == 1 && filters == chunk && is_wide_aligned<T, chunk>(from)) {
      values = convert<float>(load_wide<chunk>(from));
    } else {
#pragma unroll
      for (int f = 0; f < chunk; ++f) {
        values[f] = inside && f < filters ? convert<float>(from[f * step]) : 0.0F;
      }
    }
#pragma unroll
    for (int f = 0; f < chunk; ++f) image[f * positions + i] = inside ? values[f] : 0.0F;
  }
}

/// Stages the weights of a chunk of filters: [filter][tap down][window][tap][phase][channel].
template <class T, int Channels, int Stride, int Taps>
__device__ __forceinline__ void stage_weights(const View<const T, 5>& w, const ConvGeometry& g,
                                              const DxTile& tile, float* weights, int first) {
  constexpr int per_window = window_weights(Channels, Stride, Taps);
  const int taps_down = static_cast<int>(g.axis[1].kernel);
  const int count = chunk * taps_down * tile.windows * per_window;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) {
    const int in_window = i % per_window;
    const int line = i / per_window / tile.windows;
    const int window = i / per_window % tile.windows;
    const int c = in_window % Channels;
    const int tap = window * Taps * Stride + in_window / Channels - tile.shift;
    const int k = first + line / taps_down;
    const bool exists = in_window < Taps * Stride * Channels && c < g.channels && tap >= 0 &&
                        tap < g.axis[2].kernel && k < g.filters;
    weights[i] = exists ? convert<float>(w(k, c, 0, line % taps_down, tap)) : 0.0F;
  }
}

/// Stores a row of a thread's sums: `valid` columns from `to` on.
template <class T, int Channels, int Columns>
__device__ __forceinline__ void store_row(const View<T, 5>& dx, T* to,
                                          const float (&sums)[Channels][Columns], int channels,
                                          int valid) {
  const bool whole = valid == Columns;
  if (Channels > 1 && whole && dx.strides[1] == 1 && dx.strides[4] == Channels &&
      channels == Channels && is_wide_aligned<T, 4>(to)) {
#pragma unroll
    for (int i = 0; i < Columns * Channels; i += 4) {
      Pack<T, 4> four;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        four[j] = convert<T>(sums[(i + j) % Channels][(i + j) / Channels]);
      }
      store_wide<4>(to + i, four);
    }
    return;
  }
#pragma unroll
  for (int c = 0; c < Channels; ++c) {
    if (c < channels) {
      T* const at = to + c * dx.strides[1];
      Pack<T, Columns> row;
#pragma unroll
      for (int i = 0; i < Columns; ++i) row[i] = convert<T>(sums[c][i]);
      if (whole && dx.strides[4] == 1 && is_wide_aligned<T, Columns>(at)) {
        store_wide<Columns>(at, row);
      } else {
#pragma unroll
        for (int i = 0; i < Columns; ++i) {
          if (i < valid) at[i * dx.strides[4]] = row[i];
        }
      }
    }
  }
}

template <class T, int Channels, int Stride, int Taps>
__global__ void __launch_bounds__(max_threads, 4)
    conv_backward_data_first_layer(View<const T, 5> dy, View<const T, 5> w, View<T, 5> dx,
                                   const __grid_constant__ ConvGeometry g,
                                   const __grid_constant__ DxTile tile) {
  constexpr int columns = cells * Stride;  // of dx, per thread
  constexpr int width = round_up(Taps + cells - 1, 4);
  constexpr int per_window = window_weights(Channels, Stride, Taps);
  const ConvAxis& rows = g.axis[1];
  const int taps_down = static_cast<int>(rows.kernel);
  const int stride_down = static_cast<int>(rows.stride);
  const int across = static_cast<int>(threadIdx.x) % tile.across;
  const int down = static_cast<int>(threadIdx.x) / tile.across;
  const int positions = tile.height * tile.pitch;
  const int slots = static_cast<int>(g.axis[2].kernel) + tile.shift;
  float* const image = &shared<float>();
  float* const weights = image + chunk * positions;

  std::int64_t n = blockIdx.x;
  const std::int64_t strip = take_axis(n, tile.strips) * tile.across;
  const std::int64_t band = take_axis(n, tile.bands) * tile.down;
  const std::int64_t u = rows.padding / row_pair * row_pair + band * row_pair;
  const std::int64_t o = ceil_quotient(u - (taps_down - 1), rows.stride);
  const std::int64_t v = strip * cells + (g.axis[2].padding + tile.shift) / Stride -
                         (std::int64_t{Taps} * tile.windows - 1);
  // `own` is the thread's first row of dx, counted from the row that tap 0 of the first staged row
  // of dy writes. The thread's two rows of dx read the staged rows `low` to `high`.
  const int own = static_cast<int>(u - o * rows.stride) + down * row_pair;
  const int low = ceil_div(larger(own - (taps_down - 1), 0), stride_down);
  const int high = (own + row_pair - 1) / stride_down;

  float sums[row_pair][Channels][columns] = {};
  for (int first = 0; first < g.filters; first += chunk) {
    stage_dy(dy, g, tile, image, n, first, o, v);
    stage_weights<T, Channels, Stride, Taps>(w, g, tile, weights, first);
    __syncthreads();
    const int filters = smaller(static_cast<int>(g.filters) - first, chunk);
    for (int f = 0; f < filters; ++f) {
      const float* const of_filter = weights + f * taps_down * tile.windows * per_window;
      for (int j = low; j <= high; ++j) {
        for (int window = 0; window < tile.windows; ++window) {
          const int begin = window == 0 ? tile.shift : 0;  // slots [begin, end) have a tap
          const int end = slots - window * Taps * Stride;
          const float* const from = image + f * positions + j * tile.pitch + across * cells +
                                    Taps * (tile.windows - 1 - window);
          const Pack<float, width> dy_row = load_wide<width>(from);
#pragma unroll
          for (int r = 0; r < row_pair; ++r) {
            const int tap = own + r - j * stride_down;
            if (tap < 0 || tap >= taps_down) continue;
            const Pack<float, per_window> weight =
                load_wide<per_window>(of_filter + (tap * tile.windows + window) * per_window);
#pragma unroll
            for (int slot = 0; slot < Taps * Stride; ++slot) {
              if ((slot > 0 || begin == 0) && slot < end) {
#pragma unroll
                for (int c = 0; c < Channels; ++c) {
#pragma unroll
                  for (int cell = 0; cell < cells; ++cell) {
                    sums[r][c][cell * Stride + slot % Stride] +=
                        weight[slot * Channels + c] * dy_row[cell + Taps - 1 - slot / Stride];
                  }
                }
              }
            }
          }
        }
      }
    }
    __syncthreads();
  }

  const std::int64_t column = (strip + across) * columns;
  const int valid = static_cast<int>(smaller(g.axis[2].in - column, std::int64_t{columns}));
  if (valid <= 0) return;
#pragma unroll
  for (int r = 0; r < row_pair; ++r) {
    const std::int64_t h = u + down * row_pair + r - rows.padding;
    if (h < 0 || h >= rows.in) continue;
    store_row(dx, &dx(n, 0, 0, h, column), sums[r], static_cast<int>(g.channels), valid);
  }
}

/// Returns the number of channels for which the layer's kernel is compiled.
int kernel_channels(const ConvGeometry& g) { return g.channels == 1 ? 1 : g.channels <= 3 ? 3 : 4; }

DxTile tile_of(const ConvGeometry& g) {
  const ConvAxis& rows = g.axis[1];
  const ConvAxis& axis = g.axis[2];
  DxTile tile{};
  tile.shift = static_cast<int>(axis.padding % axis.stride);
  const std::int64_t taps = ceil_div(axis.kernel + tile.shift, axis.stride);
  const std::int64_t least = least_taps(axis.stride);
  tile.taps = static_cast<int>(taps > least + 2 ? std::int64_t{long_taps} : larger(taps, least));
  tile.windows = static_cast<int>(ceil_div(taps, std::int64_t{tile.taps}));
  const std::int64_t pieces = ceil_div(axis.in, cells * axis.stride);
  tile.across = static_cast<int>(ceil_div(pieces, ceil_div(pieces, std::int64_t{32})));
  tile.strips = ceil_div(pieces, std::int64_t{tile.across});
  const std::int64_t pairs = ceil_div(rows.in + rows.padding % row_pair, std::int64_t{row_pair});
  tile.down =
      static_cast<int>(ceil_div(pairs, ceil_div(pairs, std::int64_t{max_threads / tile.across})));
  tile.bands = ceil_div(pairs, std::int64_t{tile.down});
  tile.height = static_cast<int>((rows.kernel - 1 + tile.down * row_pair - 1) / rows.stride + 1);
  tile.pitch = cells * (tile.across - 1) + tile.taps * (tile.windows - 1) +
               round_up(tile.taps + cells - 1, 4);
  return tile;
}

std::int64_t shared_bytes(const ConvGeometry& g, const DxTile& tile) {
  const std::int64_t weights =
      g.axis[1].kernel * tile.windows *
      window_weights(kernel_channels(g), static_cast<int>(g.axis[2].stride), tile.taps);
  return 4 * chunk * (std::int64_t{tile.height} * tile.pitch + weights);
}

std::int64_t blocks_of(const ConvGeometry& g, const DxTile& tile) {
  return g.images * tile.bands * tile.strips;
}

Support supports(const ConvBackwardData::Args& args, const Context& context) {
  const ConvGeometry& g = args.geometry;
  const ConvAxis& rows = g.axis[1];
  const ConvAxis& columns = g.axis[2];
  if (args.dx.dtype == DType::f64) return unsupported("f32, f16 and bf16");
  if (!is_flat(g) || g.groups != 1) return unsupported("two dimensions and one group");
  if (g.channels < 1 || g.channels > 4) return unsupported("1 to 4 channels");
  if (columns.stride > 2) return unsupported("columns of stride 1 or 2");
  if ((rows.dilation != 1 && rows.kernel != 1) || (columns.dilation != 1 && columns.kernel != 1)) {
    return unsupported("no dilation");
  }
  const bool small = rows.kernel < max_extent && rows.stride < max_extent &&
                     columns.kernel < max_extent && g.filters < (std::int64_t{1} << 30);
  if (!small ||
      shared_bytes(g, tile_of(g)) > static_cast<std::int64_t>(context.info().shared_per_block)) {
    return unsupported(
        "the rows of dy that a tile reads, of eight filters, must fit in shared "
        "memory");
  }
  return blocks_of(g, tile_of(g)) <= 0x7fffffff ? supported : unsupported("up to 2^31 - 1 tiles");
}

/// Returns the work of a layer: a block loops over chunks of filters, which it loads and
/// multiplies.
Work work(const ConvBackwardData::Args& args, const Context&) {
  const ConvGeometry& g = args.geometry;
  const DxTile tile = tile_of(g);
  const std::int64_t threads = tile.across * tile.down;
  const std::int64_t chunks = ceil_div(g.filters, std::int64_t{chunk});
  const std::int64_t products = cells * row_pair * kernel_channels(g) * g.filters * g.taps();
  const std::int64_t per_thread = ceil_div(products, g.axis[1].stride);
  return {.operations = 2.0 * static_cast<double>(blocks_of(g, tile) * threads) *
                        static_cast<double>(per_thread),
          .blocks = blocks_of(g, tile),
          .resident = clamped((std::int64_t{227} << 10) / (shared_bytes(g, tile) + (1 << 10)),
                              std::int64_t{1}, std::int64_t{4}),
          .rounds =
              chunks * ceil_div(std::int64_t{tile.height} * tile.pitch, threads) + per_thread / 32};
}

void run(const ConvBackwardData::Args& args, Context& context) {
  const ConvGeometry& g = args.geometry;
  const DxTile tile = tile_of(g);
  const LaunchShape shape{.grid = blocks_of(g, tile),
                          .block = tile.across * tile.down,
                          .shared_bytes = static_cast<std::size_t>(shared_bytes(g, tile))};
  visit<float, f16, bf16>(args.dx.dtype, [&]<class T>() {
    const auto with_channels = [&]<int Channels>() {
      const auto with_stride = [&]<int Stride>() {
        const auto start = [&](auto kernel) {
          launch(context, shape, kernel, args.dy.view<const T, 5>(), args.w.view<const T, 5>(),
                 args.dx.view<T, 5>(), g, tile);
        };
        constexpr int least = least_taps(Stride);
        if (tile.taps == least) start(conv_backward_data_first_layer<T, Channels, Stride, least>);
        if (tile.taps == least + 1) {
          start(conv_backward_data_first_layer<T, Channels, Stride, least + 1>);
        }
        if (tile.taps == least + 2) {
          start(conv_backward_data_first_layer<T, Channels, Stride, least + 2>);
        }
      };
      if (g.axis[2].stride == 1) with_stride.template operator()<1>();
      if (g.axis[2].stride == 2) with_stride.template operator()<2>();
    };
    if (kernel_channels(g) == 1) with_channels.template operator()<1>();
    if (kernel_channels(g) == 3) with_channels.template operator()<3>();
    if (kernel_channels(g) == 4) with_channels.template operator()<4>();
  });
}

const Rung<ConvBackwardData> self{{.name = "first_layer",
                                   .after = "implicit_gemm",
                                   .backend = device_backend,
                                   .supports = supports,
                                   .work = work,
                                   .run = run}};

}  // namespace
}  // namespace rung
