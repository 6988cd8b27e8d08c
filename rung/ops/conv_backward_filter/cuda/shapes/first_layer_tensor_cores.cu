// SPDX-License-Identifier: Apache-2.0
// conv_backward_filter / first layer tensor cores
//
// Idea     Layers that read an image have one to four channels. dw is a product of few filters by
//          few terms (a channel and a tap), whose k are the pixels: a warp keeps 32 filters by 32
//          or 80 terms in the registers of mma.sync. dy is loaded from global memory in the order
//          of operand A. x is staged for a tile of pixels, one plane per channel, row and residue
//          of the column modulo the stride, so that adjacent pixels of a term are adjacent
//          elements; a second copy, shifted by one element, makes each pair an aligned word.
// Changes  Against first_layer: tensor cores multiply, so that a layer of 16-bit elements is
//          limited by its loads; dy does not pass through shared memory.
// Cost     Two words of shared memory per 8 terms by 16 pixels, which two mma use. Filters are
//          padded to 32, terms to 32 or 80.
// Limits   f16 and bf16, up to 4 channels, one group, images of two dimensions; columns of stride
//          up to 4, up to 512 terms; a tile's rows of x must fit in shared memory. Error bound as
//          tensor_cores.
#include "rung/device/ptx.hpp"
#include "rung/ops/conv_backward_filter/cuda/detail/slices.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

constexpr int warp_lanes = 32;
constexpr int mma_threads = 128;
constexpr int mma_warps = mma_threads / warp_lanes;
constexpr int mma_filters = 32;  // per warp: two operands A of 16 rows
constexpr int piece = 16;        // adjacent pixels of a row: the k of one mma
constexpr int mma_blocks = 3;    // per SM
constexpr int most_channels = 4;
constexpr std::int64_t most_stride = 4;
constexpr std::int64_t most_terms = 512;
constexpr std::int64_t tile_pixels = 512;
constexpr std::int64_t tile_columns = 128;
constexpr std::int64_t most_extent = 1 << 12;  // of windows and strides: prevents overflow

/// Tile of the pixels that a block multiplies at a time, and its planes of x: plane
/// ((channel * height + row) * stride + residue) * 2 + shift, of `words` words.
struct MmaTile {
  int rows, columns;  // of y; columns in whole pieces
  int height, width;  // of x
  int words;
  int filter_parts, term_parts;  // roles of warps
  int role_warps;                // warps of a block with the same role, which share the pixels
  std::int64_t bands, strips, tasks;
};

/// Stages x of image n from row h0 and column v0 on, with zeros around the image. A warp copies one
/// line of a channel at a time, with `at_once` loads in flight per lane.
template <class T>
__device__ __forceinline__ void stage_planes(const FilterGradient<T>& p, const MmaTile& tile,
                                             T* planes, std::int64_t n, std::int64_t h0,
                                             std::int64_t v0) {
  constexpr int at_once = 8;
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  const auto stride = static_cast<int>(p.g.axis[2].stride);
  const int lines = static_cast<int>(p.g.channels) * tile.height;
  for (int line = static_cast<int>(threadIdx.x) / warp_lanes; line < lines; line += mma_warps) {
    const int c = line / tile.height;
    const std::int64_t h = h0 + (line - c * tile.height);
    const bool has_row = h >= 0 && h < p.g.axis[1].in;
    const T* const from = p.x + n * p.x_strides[0] + c * p.x_strides[1] + h * p.x_strides[3];
    T* const to = planes + static_cast<std::int64_t>(line) * stride * 4 * tile.words;
    for (int first = lane; first < tile.width; first += at_once * warp_lanes) {
      T values[at_once];
#pragma unroll
      for (int u = 0; u < at_once; ++u) {
        const int column = first + u * warp_lanes;
        const std::int64_t v = v0 + column;
        const bool inside = has_row && column < tile.width && v >= 0 && v < p.g.axis[2].in;
        values[u] = inside ? from[v * p.x_strides[4]] : zero<T>();
      }
#pragma unroll
      for (int u = 0; u < at_once; ++u) {
        const int column = first + u * warp_lanes;
        if (column >= tile.width) continue;
        const int i = column / stride;
        T* const at = to + (column - i * stride) * 4 * tile.words + i;
        at[0] = values[u];
        if (i > 0) at[2 * tile.words - 1] = values[u];
      }
    }
  }
}

/// Returns the two elements as a word, the first in the lower half.
template <class T>
__device__ __forceinline__ std::uint32_t word_of(T low, T high) {
  return std::uint32_t{low.bits} | std::uint32_t{high.bits} << 16;
}

/// A lane's part of an operand A: four adjacent pixels of two adjacent filters. Row r of the
/// operand is filter 2 (r % 8) + r / 8; its columns 2 t, 2 t + 1, 2 t + 8 and 2 t + 9 are pixels 4
/// t to 4 t + 3.
template <class T, bool FiltersInnermost>
struct ResultPiece {
  std::uint32_t word[4];

  __device__ __forceinline__ void load(const FilterGradient<T>& p, const T* from,
                                       std::int64_t filter, int valid, bool wide) {
#pragma unroll
    for (auto& each : word) each = 0;
    const auto exist =
        static_cast<int>(clamped(p.g.filters - filter, std::int64_t{0}, std::int64_t{2}));
    if constexpr (FiltersInnermost) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (i >= valid || exist == 0) continue;
        const T* const at = from + i * p.dy_strides[4];
        if (wide && exist == 2) {
          const auto pair = load_wide<2>(at);
          word[i] = word_of(pair[0], pair[1]);
        } else {
          word[i] = word_of(at[0], exist == 2 ? at[p.dy_strides[1]] : zero<T>());
        }
      }
    } else {
#pragma unroll
      for (int f = 0; f < 2; ++f) {
        if (f >= exist || valid <= 0) continue;
        const T* const at = from + f * p.dy_strides[1];
        if (wide && valid >= 4) {
          const auto four = load_wide<4>(at);
          word[2 * f] = word_of(four[0], four[1]);
          word[2 * f + 1] = word_of(four[2], four[3]);
        } else {
          T four[4];
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            four[i] = i < valid ? at[i * p.dy_strides[4]] : zero<T>();
          }
          word[2 * f] = word_of(four[0], four[1]);
          word[2 * f + 1] = word_of(four[2], four[3]);
        }
      }
    }
  }

  __device__ __forceinline__ void unpack(std::uint32_t (&a)[4]) const {
    if constexpr (FiltersInnermost) {
      a[0] = (word[0] & 0xffffU) | word[1] << 16;
      a[1] = word[0] >> 16 | (word[1] & 0xffff0000U);
      a[2] = (word[2] & 0xffffU) | word[3] << 16;
      a[3] = word[2] >> 16 | (word[3] & 0xffff0000U);
    } else {
      a[0] = word[0];
      a[1] = word[2];
      a[2] = word[1];
      a[3] = word[3];
    }
  }
};

template <class T, int Groups, bool FiltersInnermost>
__global__ void __launch_bounds__(mma_threads, mma_blocks)
    conv_backward_filter_first_layer_tensor_cores(const __grid_constant__ FilterGradient<T> p,
                                                  const __grid_constant__ MmaTile tile, bool wide) {
  constexpr int operands = mma_filters / 16;
  const ConvAxis& rows = p.g.axis[1];
  const ConvAxis& columns = p.g.axis[2];
  const auto stride = static_cast<int>(columns.stride);
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  const int warp = static_cast<int>(threadIdx.x) / warp_lanes;
  const int g = lane / 4;  // as in mma's layouts of registers
  const int t = lane % 4;
  const int role =
      static_cast<int>(blockIdx.x) * (mma_warps / tile.role_warps) + warp / tile.role_warps;
  const int share_of_role = warp % tile.role_warps;
  const bool has_role = role < tile.filter_parts * tile.term_parts;
  const std::int64_t first_filter = std::int64_t{role % tile.filter_parts} * mma_filters + 2 * g;
  const int first_term = role / tile.filter_parts * Groups * 8;
  T* const planes = &shared<T>();

  // Word of each term's first pixel in the planes. Terms that do not exist read the last one.
  int base[Groups];
  const int row_words = stride * 2 * tile.words;  // planes of one row of x
#pragma unroll
  for (int j = 0; j < Groups; ++j) {
    int rest = smaller(first_term + j * 8 + g, static_cast<int>(p.terms) - 1);
    const int across = static_cast<int>(columns.kernel);
    const int b = rest % across * static_cast<int>(columns.dilation);
    rest /= across;
    const int a = rest % static_cast<int>(rows.kernel) * static_cast<int>(rows.dilation);
    const int c = rest / static_cast<int>(rows.kernel);
    const int offset = b / stride;
    base[j] = (c * tile.height + a) * row_words + (b % stride * 2 + offset % 2) * tile.words +
              offset / 2 + 2 * t;
  }

  float sums[operands][Groups][4] = {};
  const int row_pieces = tile.columns / piece;
  const int pieces = tile.rows * row_pieces;
  const std::int64_t share = ceil_div(tile.tasks, std::int64_t{gridDim.y});
  const std::int64_t begin = smaller(blockIdx.y * share, tile.tasks);
  const std::int64_t end = smaller(begin + share, tile.tasks);
  for (std::int64_t task = begin; task < end; ++task) {
    std::int64_t n = task;
    const std::int64_t v = take_axis(n, tile.strips) * tile.columns;
    const std::int64_t o = take_axis(n, tile.bands) * tile.rows;
    stage_planes(p, tile, planes, n, o * rows.stride - rows.padding, v * stride - columns.padding);
    __syncthreads();
    const T* const dy = p.dy + n * p.dy_strides[0] + first_filter * p.dy_strides[1];
    const auto out_rows = static_cast<int>(smaller(rows.out - o, std::int64_t{tile.rows}));
    const auto out_columns = static_cast<int>(smaller(columns.out - v, std::int64_t{tile.columns}));
    ResultPiece<T, FiltersInnermost> next[operands];
    const auto load_piece = [&](int at) {
      const int row = at / row_pieces;
      const int column = (at - row * row_pieces) * piece + 4 * t;
      const int valid = has_role && row < out_rows ? out_columns - column : 0;
      const T* const from = dy + (o + row) * p.dy_strides[3] + (v + column) * p.dy_strides[4];
#pragma unroll
      for (int m = 0; m < operands; ++m) {
        next[m].load(p, from + m * 16 * p.dy_strides[1], first_filter + m * 16, valid, wide);
      }
    };
    load_piece(share_of_role);
    for (int at = share_of_role; at < pieces && has_role; at += tile.role_warps) {
      std::uint32_t a[operands][4];
#pragma unroll
      for (int m = 0; m < operands; ++m) next[m].unpack(a[m]);
      load_piece(at + tile.role_warps);
      const int row = at / row_pieces;
      const int column = (at - row * row_pieces) * piece;
      if (row >= out_rows || column >= out_columns) continue;
      const auto* const words = reinterpret_cast<const std::uint32_t*>(planes) +
                                row * static_cast<int>(rows.stride) * row_words + column / 2;
      // Pixels that do not exist are replaced by zero in x, too: an infinity of x times zero would
      // be NaN.
      const int valid = out_columns - column - 4 * t;
      const bool all_exist = out_columns - column >= piece;
      const auto keep = [&](std::uint32_t word, int first) {
        if (all_exist || valid >= first + 2) return word;
        return valid > first ? word & 0xffffU : 0U;
      };
#pragma unroll
      for (int j = 0; j < Groups; ++j) {
        const std::uint32_t values[2] = {keep(words[base[j]], 0), keep(words[base[j] + 1], 2)};
#pragma unroll
        for (int m = 0; m < operands; ++m) ptx::mma<T>(sums[m][j], a[m], values);
      }
    }
    __syncthreads();
  }

  if (!has_role) return;
  const std::int64_t slice = std::int64_t{blockIdx.y} * tile.role_warps + share_of_role;
#pragma unroll
  for (int m = 0; m < operands; ++m) {
#pragma unroll
    for (int j = 0; j < Groups; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const std::int64_t filter = first_filter + m * 16 + i / 2;
        const int term = first_term + j * 8 + 2 * t + i % 2;
        if (filter < p.g.filters && term < p.terms) {
          p.sums[(slice * p.g.filters + filter) * p.terms + term] = sums[m][j][i];
        }
      }
    }
  }
}

template <class T>
__global__ void __launch_bounds__(block_threads)
    conv_backward_filter_first_layer_mma_add_slices(FilterGradient<T> p, std::int64_t count) {
  add_slices<T, false>(p, count);
}

// --- on the host ---------------------------------------------------------------------------------

constexpr int few_groups = 4;    // of eight terms per warp
constexpr int many_groups = 10;  // as many as registers hold

std::int64_t groups_of(const ConvGeometry& g) {
  return ceil_div(g.channels * g.taps(), std::int64_t{8});
}

MmaTile mma_tile(const ConvGeometry& g) {
  const ConvAxis& down = g.axis[1];
  const ConvAxis& across = g.axis[2];
  MmaTile tile{};
  const std::int64_t strips = ceil_div(larger(across.out, std::int64_t{1}), tile_columns);
  const std::int64_t width =
      round_up(ceil_div(larger(across.out, std::int64_t{1}), strips), std::int64_t{piece});
  tile.columns = static_cast<int>(width);
  tile.strips = ceil_div(larger(across.out, std::int64_t{1}), width);
  const std::int64_t most = larger(tile_pixels / width, std::int64_t{1});
  tile.bands = ceil_div(larger(down.out, std::int64_t{1}), most);
  tile.rows = static_cast<int>(ceil_div(larger(down.out, std::int64_t{1}), tile.bands));
  tile.height =
      static_cast<int>((tile.rows - 1) * down.stride + (down.kernel - 1) * down.dilation + 1);
  tile.width =
      static_cast<int>((width - 1) * across.stride + (across.kernel - 1) * across.dilation + 1);
  // An odd number of words spreads the planes of a warp's terms over the banks.
  tile.words = (ceil_div(tile.width, static_cast<int>(across.stride)) + 1) / 2 + 1;
  tile.words += 1 - tile.words % 2;
  tile.filter_parts =
      static_cast<int>(ceil_div(larger(g.filters, std::int64_t{1}), std::int64_t{mma_filters}));
  const std::int64_t groups = groups_of(g);
  tile.term_parts =
      groups <= few_groups ? 1 : static_cast<int>(ceil_div(groups, std::int64_t{many_groups}));
  const int roles = tile.filter_parts * tile.term_parts;
  tile.role_warps = roles >= 3 ? 1 : mma_warps / roles;
  tile.tasks = g.images * tile.bands * tile.strips;
  return tile;
}

std::int64_t planes_bytes(const ConvGeometry& g, const MmaTile& tile) {
  return 8 * g.channels * tile.height * g.axis[2].stride * tile.words;
}

struct MmaGrid {
  std::int64_t roles, along;  // blocks
};
MmaGrid grid_of(const MmaTile& tile) {
  constexpr std::int64_t blocks = mma_blocks * two_for_each / 2;
  const std::int64_t roles =
      ceil_div(tile.filter_parts * tile.term_parts, mma_warps / tile.role_warps);
  const std::int64_t most =
      clamped(blocks / roles, std::int64_t{1}, larger(tile.tasks, std::int64_t{1}));
  // All blocks but the last have the same number of tasks.
  const std::int64_t share = ceil_div(larger(tile.tasks, std::int64_t{1}), most);
  return {.roles = roles, .along = ceil_div(larger(tile.tasks, std::int64_t{1}), share)};
}

Support supports_mma_layer(const ConvBackwardFilter::Args& args, const Context& context) {
  const ConvGeometry& g = args.geometry;
  if (size_of(args.dw.dtype) != 2) return unsupported("f16 and bf16");
  if (context.info().compute_capability < 80) {
    return unsupported("mma.sync of bf16 needs compute capability 8.0");
  }
  if (!is_flat(g) || g.groups != 1) return unsupported("two dimensions and one group");
  if (g.channels < 1 || g.channels > most_channels) return unsupported("1 to 4 channels");
  if (g.channels * g.taps() > most_terms || g.filters > (1 << 16)) {
    return unsupported("up to 512 terms and 65536 filters");
  }
  if (g.axis[2].stride > most_stride) return unsupported("columns of stride up to 4");
  for (const ConvAxis* axis : {&g.axis[1], &g.axis[2]}) {
    if (axis->stride > most_extent || (axis->kernel - 1) * axis->dilation > most_extent) {
      return unsupported("windows and strides of up to 4096");
    }
  }
  if (planes_bytes(g, mma_tile(g)) > static_cast<std::int64_t>(context.info().shared_per_block)) {
    return unsupported("the rows of x that a tile reads must fit in shared memory");
  }
  return supports_sliced(args, larger(g.filters, std::int64_t{1}));
}

/// Returns whether lanes load two filters, or four pixels, of each line at once.
bool loads_wide(const ConvBackwardFilter::Args& args, bool innermost) {
  const std::int64_t unit = innermost ? 2 : 4;
  bool wide = (innermost || args.dy.strides[4] == 1) &&
              reinterpret_cast<std::uintptr_t>(args.dy.data) % (2 * unit) == 0;
  for (const int axis : {0, 1, 3, 4}) {
    const bool along = axis == (innermost ? 1 : 4);
    wide = wide && (along || args.dy.shape[axis] == 1 || args.dy.strides[axis] % unit == 0);
  }
  return wide;
}
bool filters_innermost(const ConvBackwardFilter::Args& args) {
  return args.dy.strides[1] == 1 && args.geometry.filters > 1;
}

Work work_of_mma_layer(const ConvBackwardFilter::Args& args, const Context&) {
  const ConvGeometry& g = args.geometry;
  const MmaTile tile = mma_tile(g);
  const MmaGrid grid = grid_of(tile);
  const std::int64_t slices = grid.along * tile.role_warps;
  const std::int64_t groups = groups_of(g) <= few_groups ? few_groups : many_groups;
  const std::int64_t tasks = ceil_div(tile.tasks, grid.along);
  const std::int64_t pieces = ceil_div(tile.rows * tile.columns, piece * tile.role_warps);
  const std::int64_t staged = g.channels * tile.height * tile.width / mma_threads;
  // A warp waits for each batch of x, and for each piece of dy but the first.
  const std::int64_t batches = ceil_div(g.channels * tile.height, std::int64_t{mma_warps}) *
                               ceil_div(tile.width, 8 * warp_lanes);
  const std::int64_t loads = loads_wide(args, filters_innermost(args)) ? 4 : 24;
  const double tile_operations = 2.0 * tile.rows * tile.columns * tile.filter_parts * mma_filters *
                                 static_cast<double>(tile.term_parts * groups * 8);
  return {.bytes = ConvBackwardFilter::cost(args).bytes +
                   8 * static_cast<double>(slices) * static_cast<double>(args.dw.size()),
          .operations = tile_operations * static_cast<double>(tile.tasks),
          .launches = 2,
          .blocks = grid.roles * grid.along,
          .resident = mma_blocks,
          .rounds = tasks * (batches + pieces),
          .steps = tasks * (pieces * (groups + loads) + staged)};
}

void run_mma_layer(const ConvBackwardFilter::Args& args, Context& context) {
  const ConvGeometry& g = args.geometry;
  const MmaTile tile = mma_tile(g);
  const MmaGrid grid = grid_of(tile);
  visit<f16, bf16>(args.dw.dtype, [&]<class T>() {
    const FilterGradient<T> p = in_slices<T>(args, context, grid.along * tile.role_warps);
    const LaunchShape shape{.grid = {grid.roles, grid.along},
                            .block = mma_threads,
                            .shared_bytes = static_cast<std::size_t>(planes_bytes(g, tile))};
    const bool innermost = filters_innermost(args);
    const bool wide = loads_wide(args, innermost);
    const auto start = [&]<int Groups>() {
      const auto kernel = innermost
                              ? conv_backward_filter_first_layer_tensor_cores<T, Groups, true>
                              : conv_backward_filter_first_layer_tensor_cores<T, Groups, false>;
      launch(context, shape, kernel, p, tile, wide);
    };
    groups_of(g) <= few_groups ? start.template operator()<few_groups>()
                               : start.template operator()<many_groups>();
    launch(context, sum_grid(p), conv_backward_filter_first_layer_mma_add_slices<T>, p,
           args.dw.size());
  });
}

const Rung<ConvBackwardFilter> self{{.name = "first_layer_tensor_cores",
                                     .after = "first_layer",
                                     .backend = device_backend,
                                     .supports = supports_mma_layer,
                                     .work = work_of_mma_layer,
                                     .run = run_mma_layer}};

}  // namespace
}  // namespace rung
