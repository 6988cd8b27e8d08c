// SPDX-License-Identifier: Apache-2.0
// conv / small channels
//
// Idea     With one to four channels a product has too few terms to amortize its tiles. A thread
//          computes four adjacent pixels of a row for eight filters: from tap to tap the window of
//          x moves by one element, so a row of taps needs a few wide loads and the window slides in
//          registers. A block stages the rows of x that its pixels need, of all channels, and the
//          weights in shared memory.
// Changes  Against implicit_gemm: no element of x is decoded or loaded per term, and a tile is
//          shaped by the image's rows and columns instead of 64 pixels.
// Cost     Per row of seven taps three wide loads of x and 14 of w, broadcast to all lanes, for 224
//          multiply-adds; the halo. With a stride of s, every s-th column is adjacent in shared
//          memory: taps j, j + s, ... are the taps of a window that moves by one element.
// Limits   Up to 4 channels, one group, images of two dimensions, columns without dilation; the
//          staged elements must fit in shared memory. f32, f16, bf16.
#include "rung/device/activate_all.hpp"
#include "rung/ops/conv/shared/cuda/rungs.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

constexpr int pixels = 4;    // per thread, in a row
constexpr int max_taps = 8;  // of the window in registers
constexpr int max_threads = 192;
constexpr std::int64_t max_columns = 128;       // of a tile of y
constexpr std::int64_t max_extent = 1 << 12;    // of staged data: prevents overflow
constexpr std::int64_t stage_bytes = 40 << 10;  // target for x per tile

/// Tile of y that a block computes at a time, and its staged part of x: a line of `pitch` elements
/// for each channel, row of x and phase; phase i has columns i, i + stride, ...
struct StagedTile {
  int rows, columns, pieces;  // of y; a piece is `pixels` pixels of a row
  int height, phases, pitch;
  int groups;  // groups of filters
  std::int64_t bands, strips, tasks;
};

/// Computes sums[f][i] += sum over t < Taps of w[t][f] x[i + t]; x is aligned to 16 bytes.
template <int Taps, int Filters>
__device__ __forceinline__ void slide(float (&sums)[Filters][pixels], const float* x,
                                      const float* w) {
  constexpr int packs = ceil_div(pixels + Taps - 1, 4);
  float window[packs * 4];
#pragma unroll
  for (int pack = 0; pack < packs; ++pack) {
    const Pack<float, 4> four = load_wide<4>(x + 4 * pack);
#pragma unroll
    for (int i = 0; i < 4; ++i) window[4 * pack + i] = four[i];
  }
#pragma unroll
  for (int t = 0; t < Taps; ++t) {
    const Pack<float, Filters> weight = load_wide<Filters>(w + t * Filters);
#pragma unroll
    for (int f = 0; f < Filters; ++f) {
#pragma unroll
      for (int i = 0; i < pixels; ++i) sums[f][i] += weight[f] * window[t + i];
    }
  }
}

/// Adds taps whose number, up to max_taps, is not a compile-time constant.
template <int Taps = 1, int Filters>
__device__ __forceinline__ void slide_over(int taps, float (&sums)[Filters][pixels], const float* x,
                                           const float* w) {
  if (taps == Taps) {
    slide<Taps>(sums, x, w);
  } else if constexpr (Taps < max_taps) {
    slide_over<Taps + 1>(taps, sums, x, w);
  }
}

/// Stores the first `valid` pixels of a piece, for the filters from k on: several elements at once
/// along the axis that is contiguous in y.
template <class T, int Filters>
__device__ __forceinline__ void store_piece(const Layer<T>& p, const float (&sums)[Filters][pixels],
                                            T* to, int k, int valid) {
  const std::int64_t across = p.y.strides[4];
  const std::int64_t filter = p.y.strides[1];
  const int filters = static_cast<int>(p.geometry.filters) - k;
  Pack<T, pixels> made[Filters];
#pragma unroll
  for (int f = 0; f < Filters; ++f) {
    Pack<float, pixels> values;
    const float bias = p.epilogue.bias_of(k + smaller(f, filters - 1));
#pragma unroll
    for (int i = 0; i < pixels; ++i) values[i] = sums[f][i] + bias;
    activate_all<T>(p.epilogue.activation, values);
    made[f] = convert<T>(values);
  }
  if (across != 1 && filter == 1 && filters >= Filters && across % 4 == 0 &&
      is_wide_aligned<T, 4>(to)) {
#pragma unroll
    for (int i = 0; i < pixels; ++i) {
#pragma unroll
      for (int f = 0; f < Filters; f += 4) {
        const Pack<T, 4> four{{made[f][i], made[f + 1][i], made[f + 2][i], made[f + 3][i]}};
        if (i < valid) store_wide<4>(to + i * across + f, four);
      }
    }
    return;
  }
#pragma unroll
  for (int f = 0; f < Filters; ++f) {
    if (f < filters) {
      T* const at = to + f * filter;
      if (across == 1 && valid == pixels && is_wide_aligned<T, pixels>(at)) {
        store_wide<pixels>(at, made[f]);
      } else if (across == 1 && valid == pixels && is_wide_aligned<T, 2>(at)) {
        store_wide<2>(at, Pack<T, 2>{{made[f][0], made[f][1]}});
        store_wide<2>(at + 2, Pack<T, 2>{{made[f][2], made[f][3]}});
      } else {
#pragma unroll
        for (int i = 0; i < pixels; ++i) {
          if (i < valid) at[i * across] = made[f][i];
        }
      }
    }
  }
}

/// Stages the part of image n that a tile reads, from row h0 and column v0 of x on, with zeros
/// around the image. A thread keeps its columns and has `at_once` loads in flight.
template <class T>
__device__ __forceinline__ void stage(const Layer<T>& p, const StagedTile& tile, float* image,
                                      std::int64_t n, std::int64_t h0, std::int64_t v0) {
  constexpr int at_once = 8;
  const ConvAxis& rows = p.geometry.axis[1];
  const ConvAxis& columns = p.geometry.axis[2];
  const int thread = static_cast<int>(threadIdx.x);
  const int line = tile.phases * tile.pitch;
  const int across = smaller(line, static_cast<int>(blockDim.x));
  const int down = static_cast<int>(blockDim.x) / across;
  if (thread >= across * down) return;
  for (int j = thread % across; j < line; j += across) {
    const std::int64_t v = v0 + j / tile.pitch + j % tile.pitch * columns.stride;
    const bool inside = v >= 0 && v < columns.in;
    for (int c = 0; c < static_cast<int>(p.geometry.channels); ++c) {
      const T* const column = &p.x(n, c, 0, 0, inside ? v : 0);
      for (int first = thread / across; first < tile.height; first += down * at_once) {
        float values[at_once];
#pragma unroll
        for (int u = 0; u < at_once; ++u) {
          const int row = first + u * down;
          const std::int64_t h = h0 + row;
          const bool exists = inside && row < tile.height && h >= 0 && h < rows.in;
          values[u] = exists ? convert<float>(column[h * p.x.strides[3]]) : 0.0F;
        }
#pragma unroll
        for (int u = 0; u < at_once; ++u) {
          const int row = first + u * down;
          if (row < tile.height) image[(c * tile.height + row) * line + j] = values[u];
        }
      }
    }
  }
}

template <class T, int Filters>
__global__ void __launch_bounds__(max_threads, 3)
    conv_small_channels(const __grid_constant__ Layer<T> p,
                        const __grid_constant__ StagedTile tile) {
  const ConvAxis& rows = p.geometry.axis[1];
  const ConvAxis& columns = p.geometry.axis[2];
  const int channels = static_cast<int>(p.geometry.channels);
  const int taps_down = static_cast<int>(rows.kernel);
  const int taps = static_cast<int>(columns.kernel);
  const int stride = static_cast<int>(columns.stride);
  const int terms = channels * taps_down * taps;
  const int whole = taps / stride;  // taps per phase; the first `extra` phases have one more
  const int extra = taps % stride;
  const int thread = static_cast<int>(threadIdx.x);
  const int threads = static_cast<int>(blockDim.x);
  const int line = tile.phases * tile.pitch;
  // Layouts: [group][channel][tap down][phase][tap of the phase][filter];
  // [channel][row][phase][column].
  float* const weights = &shared<float>();
  float* const image = weights + tile.groups * terms * Filters;

  for (int i = thread; i < tile.groups * terms; i += threads) {
    int order = i % taps;  // index of a tap in its row, phase by phase
    int phase = 0;
    for (int count; order >= (count = ceil_div(taps - phase, stride)); ++phase) order -= count;
    const int tap = phase + order * stride;
    const int a = i / taps % taps_down;
    const int c = i / taps / taps_down % channels;
    const int k = i / terms * Filters;
    for (int f = 0; f < Filters; ++f) {
      weights[i * Filters + f] =
          k + f < p.geometry.filters ? convert<float>(p.w(k + f, c, 0, a, tap)) : 0.0F;
    }
  }
  for (std::int64_t task = blockIdx.x; task < tile.tasks; task += gridDim.x) {
    std::int64_t n = task;
    const std::int64_t first_column = take_axis(n, tile.strips) * tile.columns;
    const std::int64_t first_row = take_axis(n, tile.bands) * tile.rows;
    stage(p, tile, image, n, first_row * rows.stride - rows.padding,
          first_column * stride - columns.padding);
    __syncthreads();
    const int pieces = tile.rows * tile.pieces;
    for (int item = thread; item < tile.groups * pieces; item += threads) {
      const int group = item / pieces;
      const int row = item % pieces / tile.pieces;
      const int column = item % tile.pieces * pixels;
      const std::int64_t oh = first_row + row;
      const std::int64_t ow = first_column + column;
      if (oh >= rows.out || ow >= columns.out) continue;
      float sums[Filters][pixels] = {};
      const float* weight = weights + group * terms * Filters;
      const float* x = image + row * static_cast<int>(rows.stride) * line + column;
      for (int c = 0; c < channels; ++c) {
        const float* of_row = x + c * tile.height * line;
        for (int a = 0; a < taps_down; ++a) {
          for (int phase = 0; phase < tile.phases; ++phase) {
            const int count = whole + (phase < extra ? 1 : 0);
            for (int t = 0; t < count; t += max_taps) {
              const int now = smaller(count - t, max_taps);
              slide_over(now, sums, of_row + phase * tile.pitch + t, weight);
              weight += now * Filters;
            }
          }
          of_row += static_cast<int>(rows.dilation) * line;
        }
      }
      const int k = group * Filters;
      store_piece(p, sums, &p.y(n, k, 0, oh, ow), k,
                  static_cast<int>(smaller(columns.out - ow, std::int64_t{pixels})));
    }
    __syncthreads();
  }
}

/// Returns the number of filters per thread: four if eight would leave more of them unused.
int thread_filters(const ConvGeometry& g) {
  return round_up(g.filters, std::int64_t{8}) > round_up(g.filters, std::int64_t{4}) &&
                 g.filters <= 12
             ? 4
             : 8;
}

std::int64_t weight_bytes(const ConvGeometry& g) {
  return 4 * g.channels * g.taps() * round_up(g.filters, std::int64_t{thread_filters(g)});
}

std::int64_t image_bytes(const ConvGeometry& g, const StagedTile& tile) {
  return std::int64_t{4} * g.channels * tile.height * tile.phases * tile.pitch;
}

void set_rows(StagedTile& tile, const ConvGeometry& g, std::int64_t rows) {
  const ConvAxis& axis = g.axis[1];
  tile.bands = ceil_div(axis.out, rows);
  tile.rows = static_cast<int>(ceil_div(axis.out, tile.bands));
  tile.height =
      static_cast<int>((tile.rows - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1);
  tile.tasks = g.images * tile.bands * tile.strips;
}

/// Returns the number of items of a tile, each one piece of a row for one group of filters. Threads
/// compute them in rounds.
std::int64_t items_of(const StagedTile& tile) {
  return tile.groups * std::int64_t{tile.rows} * tile.pieces;
}

/// Returns a tile of up to 64 rows, halved until its part of x fits in stage_bytes and either there
/// are four tiles per SM or each thread has at most one item.
StagedTile tile_of(const ConvGeometry& g, const Context& context) {
  const ConvAxis& axis = g.axis[2];
  StagedTile tile{};
  tile.groups = static_cast<int>(ceil_div(g.filters, std::int64_t{thread_filters(g)}));
  tile.pieces = static_cast<int>(
      ceil_div(ceil_div(axis.out, ceil_div(axis.out, max_columns)), std::int64_t{pixels}));
  tile.columns = tile.pieces * pixels;
  tile.strips = ceil_div(axis.out, std::int64_t{tile.columns});
  tile.phases = static_cast<int>(smaller(axis.stride, axis.kernel));
  tile.pitch = static_cast<int>(tile.columns +
                                round_up(ceil_div(axis.kernel, axis.stride) - 1, std::int64_t{4}));
  std::int64_t rows = smaller(g.axis[1].out, std::int64_t{64});
  const auto crowded = [&] {
    set_rows(tile, g, rows);
    return image_bytes(g, tile) > stage_bytes ||
           (tile.tasks < 4 * context.info().sms && items_of(tile) > max_threads);
  };
  while (crowded() && rows > 1) rows = ceil_div(rows, std::int64_t{2});
  return tile;
}

/// Returns the threads per block: fewer than max_threads if many would idle in the last round.
int threads_of(const StagedTile& tile) {
  const std::int64_t items = items_of(tile);
  int best = max_threads;
  for (int threads = max_threads; threads >= 96; threads -= 32) {
    if (10 * round_up(items, std::int64_t{threads}) < 9 * round_up(items, std::int64_t{best})) {
      best = threads;
    }
  }
  return best;
}

std::int64_t blocks_of(const StagedTile& tile, const Context& context) {
  return smaller(tile.tasks, std::int64_t{16} * context.info().sms);
}

}  // namespace

Support conv_cuda::supports_small_channels(const Conv::Args& args, const Context& context) {
  const ConvGeometry& g = args.geometry;
  const ConvAxis& rows = g.axis[1];
  const ConvAxis& columns = g.axis[2];
  if (args.x.dtype == DType::f64) return unsupported("f32, f16 and bf16");
  if (!is_flat(g) || g.groups != 1) return unsupported("two dimensions and one group");
  if (g.channels < 1 || g.channels > 4) return unsupported("1 to 4 channels");
  if (columns.dilation != 1 && columns.kernel != 1) return unsupported("columns without dilation");
  const bool small = (rows.kernel - 1) * rows.dilation < max_extent && rows.stride < max_extent &&
                     columns.kernel < max_extent && columns.stride < max_extent &&
                     g.filters <= max_extent && g.taps() <= max_extent;
  if (small && args.y.size() == 0) return supported;
  if (!small || weight_bytes(g) + image_bytes(g, tile_of(g, context)) >
                    static_cast<std::int64_t>(context.info().shared_per_block)) {
    return unsupported("what a row of pixels reads, and all weights, must fit in shared memory");
  }
  return supported;
}

/// Returns the work of a layer. A block loops over tiles, and each of its threads over items.
Work conv_cuda::small_channels_facts(const Conv::Args& args, const Context& context) {
  const ConvGeometry& g = args.geometry;
  const StagedTile tile = tile_of(g, context);
  const std::int64_t threads = threads_of(tile), blocks = blocks_of(tile, context);
  const std::int64_t items = ceil_div(items_of(tile), threads);
  const std::int64_t products = thread_filters(g) * pixels * g.channels * g.taps();
  const std::int64_t loads = products / 32 + 4 * g.channels * g.axis[1].kernel * tile.phases + 12;
  return {.operations = 2.0 * static_cast<double>(tile.tasks * threads * items * products),
          .blocks = blocks,
          .resident = clamped(smaller((std::int64_t{227} << 10) /
                                          (weight_bytes(g) + image_bytes(g, tile) + (1 << 10)),
                                      704 / threads),
                              std::int64_t{1}, std::int64_t{16}),
          .rounds = ceil_div(tile.tasks, blocks) * items * loads + weight_bytes(g) / (4 * threads)};
}

void conv_cuda::run_small_channels(const Conv::Args& args, Context& context) {
  const ConvGeometry& g = args.geometry;
  const StagedTile tile = tile_of(g, context);
  const auto shared = static_cast<std::size_t>(weight_bytes(g) + image_bytes(g, tile));
  visit<float, f16, bf16>(args.x.dtype, [&]<class T>() {
    const LaunchShape shape{
        .grid = blocks_of(tile, context), .block = threads_of(tile), .shared_bytes = shared};
    if (thread_filters(g) == 4) {
      launch(context, shape, conv_small_channels<T, 4>, layer_of<T>(args), tile);
    } else {
      launch(context, shape, conv_small_channels<T, 8>, layer_of<T>(args), tile);
    }
  });
}

namespace {

const Rung<Conv> self{{.name = "small_channels",
                       .after = "implicit_gemm",
                       .backend = device_backend,
                       .supports = supports_small_channels,
                       .work = small_channels_facts,
                       .run = run_small_channels}};

}  // namespace
}  // namespace rung
