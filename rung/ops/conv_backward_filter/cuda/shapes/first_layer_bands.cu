// SPDX-License-Identifier: Apache-2.0
// conv_backward_filter / first layer bands
//
// Idea     A block computes up to 32 filters of a layer of one to four channels from tiles of
//          several rows of y. A warp has a role, taps of one channel (all nine for 8 filters, or a
//          row of five or seven for 16), and sums them in registers over all tiles; its lanes take
//          runs of four adjacent pixels, numbered through all rows of the tile.
// Changes  Against taps_in_registers: a block computes many filters and every channel, so that dy
//          and x are staged in shared memory once for all of them, by asynchronous copies.
// Cost     With 3 x 3 taps, a lane issues eight wide loads of dy and six of x (nine with stride 2)
//          for 288 multiply-adds. With stride 2, shared memory holds the even columns of x, then
//          the odd ones.
// Limits   f32; 3 x 3, 5 x 5 and 7 x 7 taps without dilation, columns of stride 1 or 2, up to 4
//          channels, one group.
#include "rung/device/collectives.hpp"
#include "rung/device/ptx/async_copy.hpp"
#include "rung/ops/conv_backward_filter/cuda/detail/slices.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

constexpr int run_pixels = 4;          // adjacent pixels of a lane
constexpr int most_tile_filters = 32;  // per block
constexpr int most_tile_rows = 8;
constexpr std::int64_t most_row_stride = 1 << 10;  // prevents overflow

/// Tile of pixels, its stages of dy ([filter][row][column]) and of x ([channel][row][phase][column]
/// with a line of `pitch` columns; phase i has columns i, i + stride, ...), and the roles of warps.
struct RunTile {
  int rows, runs;     // of y
  int height, pitch;  // of x
  int warp_filters;
  int parts;       // groups of filters per block
  int row_warps;   // groups of rows of taps per block
  int shares;      // warps of the same role, which share the runs
  int row_blocks;  // blocks that share the filter's rows of taps
  int filter_blocks;
  int resident;  // blocks per SM
  std::int64_t bands, strips, tasks, slices;
  bool wide;  // runs of dy are aligned to 16 bytes
};

constexpr int tap_rows_of_warp(int taps) { return taps == 3 ? 3 : 1; }
/// Warps per block, so that the sums fit in registers: up to 80, or 112 of 7 taps for 16 filters.
constexpr int most_warps(int taps, int filters) { return taps == 7 && filters == 16 ? 12 : 16; }

/// Copies `count` elements of a line, of which [low, high) exist; the rest are zero. A lane copies
/// every 32nd element; its copies are `apart` elements from each other.
__device__ __forceinline__ void copy_line(float* to, int apart, const float* from,
                                          std::int64_t step, int low, int high, int count) {
  constexpr int at_once = 4;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  from += lane * step;
  int column = lane;
  if (step == 1 && low <= 0 && high >= count) {
#pragma unroll 1
    for (; column + 32 * (at_once - 1) < count; column += 32 * at_once) {
#pragma unroll
      for (int u = 0; u < at_once; ++u) ptx::async_copy<4>(to + u * apart, from + u * 32);
      to += at_once * apart;
      from += at_once * 32;
    }
  }
#pragma unroll 1
  for (; column < count; column += 32) {
    if (column >= low && column < high) {
      ptx::async_copy<4>(to, from);
    } else {
      *to = 0.0F;
    }
    to += apart;
    from += 32 * step;
  }
}

/// Copies a tile of dy and x.
template <int Taps, int Stride>
__device__ __forceinline__ void copy_tile(const FilterGradient<float>& p, const RunTile& tile,
                                          std::int64_t task, std::int64_t first_filter,
                                          int first_tap, float* to) {
  std::int64_t n = task;
  const auto v = static_cast<int>(take_axis(n, tile.strips)) * tile.runs * run_pixels;
  const auto o = static_cast<int>(take_axis(n, tile.bands)) * tile.rows;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int warps = static_cast<int>(blockDim.x) / 32;
  const int columns = tile.runs * run_pixels;
  const int filters = tile.parts * tile.warp_filters;
  const auto existing =
      static_cast<int>(smaller(p.g.filters - first_filter, std::int64_t{filters}));
  const int valid = smaller(static_cast<int>(p.g.axis[2].out) - v, columns);
  const float* const results =
      p.dy + n * p.dy_strides[0] + first_filter * p.dy_strides[1] + v * p.dy_strides[4];
#pragma unroll 1
  for (int row = 0; row < tile.rows; ++row) {
    const bool has_row = o + row < static_cast<int>(p.g.axis[1].out);
    const float* const line = results + (o + row) * p.dy_strides[3];
#pragma unroll 1
    for (int filter = warp; filter < filters; filter += warps) {
      const float* const from = line + filter * p.dy_strides[1];
      float* const at = to + (filter * tile.rows + row) * columns;
      const int high = has_row && filter < existing ? valid : 0;
      if (tile.wide && high == columns) {
        if (lane < tile.runs) {
          ptx::async_copy<16>(at + lane * run_pixels, from + lane * run_pixels);
        }
      } else {
        copy_line(at + lane, 32, from, p.dy_strides[4], 0, high, columns);
      }
    }
  }
  to += filters * tile.rows * columns;
  const int h0 =
      o * static_cast<int>(p.g.axis[1].stride) - static_cast<int>(p.g.axis[1].padding) + first_tap;
  const int v0 = v * Stride - static_cast<int>(p.g.axis[2].padding);
  const int high = static_cast<int>(p.g.axis[2].in) - v0;
  const int count = Stride * tile.pitch;
  // Warps begin with the last one, since the first ones may have copied more of dy.
  const int lines = static_cast<int>(p.g.channels) * tile.height;
#pragma unroll 1
  for (int line = warps - 1 - warp; line < lines; line += warps) {
    const int c = line / tile.height;
    const int h = h0 + line - c * tile.height;
    const bool has_row = h >= 0 && h < static_cast<int>(p.g.axis[1].in);
    const float* const from =
        p.x + n * p.x_strides[0] + c * p.x_strides[1] + h * p.x_strides[3] + v0 * p.x_strides[4];
    copy_line(to + line * count + lane % Stride * tile.pitch + lane / Stride, 32 / Stride, from,
              p.x_strides[4], -v0, has_row ? high : -v0, count);
  }
}

template <int Taps, int Stride, int WarpFilters>
__global__ void __launch_bounds__(most_warps(Taps, WarpFilters) * 32, 1)
    conv_backward_filter_first_layer_bands(const __grid_constant__ FilterGradient<float> p,
                                           const __grid_constant__ RunTile tile) {
  constexpr int tap_rows = tap_rows_of_warp(Taps);
  const ConvAxis& rows = p.g.axis[1];
  const ConvAxis& columns = p.g.axis[2];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto channels = static_cast<int>(p.g.channels);
  int role = static_cast<int>(threadIdx.x) / 32;
  const int part = role % tile.parts;
  role /= tile.parts;
  const int channel = role % channels;
  role /= channels;
  const int own_rows = role % tile.row_warps * tap_rows;
  const int share = role / tile.row_warps;
  const int first_tap = static_cast<int>(blockIdx.x) % tile.row_blocks * tile.row_warps * tap_rows;
  const bool has_taps = first_tap + own_rows < Taps;
  const std::int64_t first_filter =
      std::int64_t{blockIdx.x} / tile.row_blocks * tile.parts * WarpFilters;
  const int pixels = tile.rows * tile.runs * run_pixels;
  const int of_results = tile.parts * WarpFilters * pixels;
  const int of_image = channels * tile.height * Stride * tile.pitch;
  float* const tiles = &shared<float>();

  float sums[tap_rows][Taps][WarpFilters] = {};
  const std::int64_t begin = tile.tasks * std::int64_t{blockIdx.y} / gridDim.y;
  const std::int64_t end = tile.tasks * (std::int64_t{blockIdx.y} + 1) / gridDim.y;
  if (begin < end) {
    copy_tile<Taps, Stride>(p, tile, begin, first_filter, first_tap,
                            tiles + begin % 2 * (of_results + of_image));
  }
  ptx::async_commit();
  for (std::int64_t task = begin; task < end; ++task) {
    ptx::async_wait<0>();
    __syncthreads();
    // The other tile was read before the barrier.
    if (task + 1 < end) {
      copy_tile<Taps, Stride>(p, tile, task + 1, first_filter, first_tap,
                              tiles + (task + 1) % 2 * (of_results + of_image));
      ptx::async_commit();
    }
    std::int64_t rest = task;
    const auto v = static_cast<int>(take_axis(rest, tile.strips)) * tile.runs * run_pixels;
    const auto o = static_cast<int>(take_axis(rest, tile.bands)) * tile.rows;
    const int existing_rows = smaller(static_cast<int>(rows.out) - o, tile.rows);
    const float* const results =
        tiles + task % 2 * (of_results + of_image) + part * WarpFilters * pixels;
    const float* const image = tiles + task % 2 * (of_results + of_image) + of_results +
                               (channel * tile.height + own_rows) * Stride * tile.pitch;
    const int runs = has_taps ? existing_rows * tile.runs : 0;
#pragma unroll 1
    for (int first = share * 32; first < runs; first += tile.shares * 32) {
      const int index = smaller(first + lane, runs - 1);
      const int row = index / tile.runs;
      const int column = (index - row * tile.runs) * run_pixels;
      // Pixels that do not exist are left out, not multiplied by zero: x may be infinite there.
      const int valid = first + lane < runs ? static_cast<int>(columns.out) - v - column : 0;
      const float* const from =
          image + row * static_cast<int>(rows.stride) * Stride * tile.pitch + column;
      const float* const own = results + index * run_pixels;
      const auto multiply = [&]<bool All>() {
#pragma unroll
        for (int a = 0; a < tap_rows; ++a) {
          constexpr int width = round_up(ceil_div(Taps, Stride) - 1 + run_pixels, 4);
          Pack<float, width> window[Stride];
#pragma unroll
          for (int phase = 0; phase < Stride; ++phase) {
            window[phase] = load_wide<width>(from + (a * Stride + phase) * tile.pitch);
          }
#pragma unroll
          for (int f = 0; f < WarpFilters; ++f) {
            const Pack<float, run_pixels> result = load_wide<run_pixels>(own + f * pixels);
#pragma unroll
            for (int i = 0; i < run_pixels; ++i) {
              if (!All && i >= valid) continue;
#pragma unroll
              for (int b = 0; b < Taps; ++b) {
                sums[a][b][f] += result[i] * window[b % Stride][i + b / Stride];
              }
            }
          }
        }
      };
      if (__all_sync(~0U, valid >= run_pixels) != 0) {
        multiply.template operator()<true>();
      } else {
        multiply.template operator()<false>();
      }
    }
  }
  if (!has_taps) return;

  // Lane i stores every 32nd sum from the i-th on.
  constexpr int count = tap_rows * Taps * WarpFilters;
  float own_sums[ceil_div(count, 32)] = {};
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const float sum =
        warp_reduce(sums[i / WarpFilters / Taps][i / WarpFilters % Taps][i % WarpFilters],
                    [](float one, float two) { return one + two; });
    if (lane == i % 32) own_sums[i / 32] = sum;
  }
  float* const slice =
      p.sums + (std::int64_t{blockIdx.y} * tile.shares + share) * p.g.filters * p.terms;
#pragma unroll
  for (int i = 0; i < ceil_div(count, 32); ++i) {
    const int index = i * 32 + lane;
    const std::int64_t filter = first_filter + part * WarpFilters + index % WarpFilters;
    const int tap = (first_tap + own_rows) * Taps + index / WarpFilters;
    if (index < count && filter < p.g.filters) {
      slice[filter * p.terms + channel * Taps * Taps + tap] = own_sums[i];
    }
  }
}

__global__ void __launch_bounds__(block_threads)
    conv_backward_filter_first_layer_bands_add_slices(FilterGradient<float> p, std::int64_t count) {
  add_slices<float, false>(p, count);
}

// --- on the host ---------------------------------------------------------------------------------

constexpr std::int64_t one_for_each = two_for_each / 2;

/// Returns the shared memory: two tiles.
std::int64_t tile_bytes(const ConvGeometry& g, const RunTile& tile) {
  return 8 * (std::int64_t{tile.parts} * tile.warp_filters * tile.rows * tile.runs * run_pixels +
              g.channels * tile.height * g.axis[2].stride * tile.pitch);
}

/// Returns the instructions of a block's warps per tile: multiply-adds, and four per copy of 32
/// elements.
std::int64_t tile_instructions(const ConvGeometry& g, const RunTile& tile) {
  const std::int64_t taps = g.axis[2].kernel;
  const std::int64_t warps = g.channels * tile.parts * tile.row_warps * tile.shares;
  const std::int64_t turns =
      ceil_div(std::int64_t{tile.rows} * tile.runs, std::int64_t{32} * tile.shares);
  const std::int64_t sums = tap_rows_of_warp(static_cast<int>(taps)) * taps * tile.warp_filters;
  return warps * turns * sums * run_pixels + tile_bytes(g, tile) / (8 * 32) * 4;
}

/// Returns the tile of a layer whose number of rows takes the fewest instructions of those that fit
/// in shared memory; rows is 0 if none does.
RunTile run_tile(const ConvGeometry& g, std::int64_t shared_bytes) {
  const ConvAxis& down = g.axis[1];
  const ConvAxis& across = g.axis[2];
  const auto taps = static_cast<int>(across.kernel);
  const int tap_rows = tap_rows_of_warp(taps);
  RunTile tile{};
  const std::int64_t runs = ceil_div(larger(across.out, std::int64_t{1}), std::int64_t{run_pixels});
  tile.runs = static_cast<int>(ceil_div(runs, ceil_div(runs, std::int64_t{32})));
  tile.strips = ceil_div(runs, std::int64_t{tile.runs});
  tile.pitch =
      static_cast<int>(run_pixels * tile.runs +
                       round_up(ceil_div(across.kernel, across.stride) - 1, std::int64_t{4}));
  const auto groups = static_cast<int>(down.kernel) / tap_rows;
  tile.warp_filters = taps > 3 && g.filters > 8 ? 16 : 8;
  const int warps = most_warps(taps, tile.warp_filters) / static_cast<int>(g.channels);
  tile.row_blocks = ceil_div(groups, smaller(groups, warps));
  tile.row_warps = ceil_div(groups, tile.row_blocks);
  tile.parts = static_cast<int>(clamped(
      ceil_div(g.filters, std::int64_t{tile.warp_filters}), std::int64_t{1},
      smaller<std::int64_t>(most_tile_filters / tile.warp_filters, warps / tile.row_warps)));
  tile.filter_blocks = static_cast<int>(
      ceil_div(larger(g.filters, std::int64_t{1}), std::int64_t{tile.parts} * tile.warp_filters));
  const std::int64_t blocks = std::int64_t{tile.filter_blocks} * tile.row_blocks;
  RunTile best{};
  std::int64_t least = 0;
  for (int rows = 1; rows <= most_tile_rows && (rows == 1 || rows <= down.out); ++rows) {
    tile.rows = rows;
    tile.shares = smaller(warps / (tile.row_warps * tile.parts), ceil_div(rows * tile.runs, 32));
    tile.height = static_cast<int>((rows - 1) * down.stride + tile.row_warps * tap_rows);
    constexpr std::int64_t reserved_bytes = 1 << 10;  // of each block, by the driver
    const int block_warps =
        static_cast<int>(g.channels) * tile.parts * tile.row_warps * tile.shares;
    const std::int64_t fit =
        (shared_bytes + reserved_bytes) / (tile_bytes(g, tile) + reserved_bytes);
    if (fit == 0) break;
    tile.resident = static_cast<int>(
        smaller(std::int64_t{most_warps(taps, tile.warp_filters) / block_warps}, fit));
    tile.bands = ceil_div(larger(down.out, std::int64_t{1}), std::int64_t{rows});
    tile.tasks = down.out == 0 || across.out == 0 ? 0 : g.images * tile.bands * tile.strips;
    tile.slices = clamped(one_for_each * tile.resident / blocks, std::int64_t{1},
                          larger(tile.tasks, std::int64_t{1}));
    const std::int64_t instructions =
        ceil_div(tile.tasks, tile.slices) * tile.resident * tile_instructions(g, tile);
    if (rows > 1 && instructions >= least) continue;
    best = tile;
    least = instructions;
  }
  return best;
}

RunTile run_tile(const ConvBackwardFilter::Args& args, const Context& context) {
  RunTile tile =
      run_tile(args.geometry, static_cast<std::int64_t>(context.info().shared_per_block));
  tile.wide = args.dy.strides[4] == 1 && reinterpret_cast<std::uintptr_t>(args.dy.data) % 16 == 0;
  for (const int axis : {0, 1, 3}) {
    tile.wide = tile.wide && (args.dy.shape[axis] == 1 || args.dy.strides[axis] % 4 == 0);
  }
  return tile;
}

Support supports_runs(const ConvBackwardFilter::Args& args, const Context& context) {
  const ConvGeometry& g = args.geometry;
  const ConvAxis& rows = g.axis[1];
  const ConvAxis& columns = g.axis[2];
  if (args.dw.dtype != DType::f32) return unsupported("f32");
  if (!is_flat(g) || g.groups != 1) return unsupported("two dimensions and one group");
  if (g.channels < 1 || g.channels > 4) return unsupported("1 to 4 channels");
  if (rows.kernel != columns.kernel ||
      (columns.kernel != 3 && columns.kernel != 5 && columns.kernel != 7)) {
    return unsupported("3 x 3, 5 x 5 or 7 x 7 taps");
  }
  if (rows.dilation != 1 || columns.dilation != 1) return unsupported("no dilation");
  if (columns.stride > 2 || rows.stride > most_row_stride) {
    return unsupported("columns of stride 1 or 2, rows of up to 1024");
  }
  if (g.filters > (1 << 20)) return unsupported("up to 2^20 filters");
  if (run_tile(args, context).rows == 0) {
    return unsupported("the rows of x that a tile reads must fit in shared memory");
  }
  return supports_sliced(args, larger(g.filters, std::int64_t{1}));
}

Work work_of_runs(const ConvBackwardFilter::Args& args, const Context& context) {
  const ConvGeometry& g = args.geometry;
  const RunTile tile = run_tile(args, context);
  const std::int64_t blocks = std::int64_t{tile.filter_blocks} * tile.row_blocks;
  const std::int64_t tasks = ceil_div(tile.tasks, tile.slices);
  return {.bytes = ConvBackwardFilter::cost(args).bytes +
                   8 * static_cast<double>(tile.slices * tile.shares) *
                       static_cast<double>(args.dw.size()),
          .launches = 2,
          .blocks = blocks * tile.slices,
          .resident = tile.resident,
          .rounds = tasks,
          .steps = tasks * tile_instructions(g, tile) / 512};
}

void run_runs(const ConvBackwardFilter::Args& args, Context& context) {
  const ConvGeometry& g = args.geometry;
  const RunTile tile = run_tile(args, context);
  const FilterGradient<float> p = in_slices<float>(args, context, tile.slices * tile.shares);
  const LaunchShape shape{
      .grid = {std::int64_t{tile.filter_blocks} * tile.row_blocks, tile.slices},
      .block = static_cast<int>(g.channels) * tile.parts * tile.row_warps * tile.shares * 32,
      .shared_bytes = static_cast<std::size_t>(tile_bytes(g, tile))};
  const auto with_taps = [&]<int Taps, int WarpFilters>() {
    if (g.axis[2].kernel != Taps || tile.warp_filters != WarpFilters) return;
    if (g.axis[2].stride == 1) {
      launch(context, shape, conv_backward_filter_first_layer_bands<Taps, 1, WarpFilters>, p, tile);
    } else {
      launch(context, shape, conv_backward_filter_first_layer_bands<Taps, 2, WarpFilters>, p, tile);
    }
  };
  with_taps.template operator()<3, 8>();
  with_taps.template operator()<5, 8>();
  with_taps.template operator()<5, 16>();
  with_taps.template operator()<7, 8>();
  with_taps.template operator()<7, 16>();
  launch(context, sum_grid(p), conv_backward_filter_first_layer_bands_add_slices, p,
         args.dw.size());
}

const Rung<ConvBackwardFilter> self{{.name = "first_layer_bands",
                                     .after = "taps_in_registers",
                                     .backend = device_backend,
                                     .supports = supports_runs,
                                     .work = work_of_runs,
                                     .run = run_runs}};

}  // namespace
}  // namespace rung
