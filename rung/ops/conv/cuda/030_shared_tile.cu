// SPDX-License-Identifier: Apache-2.0
// conv / shared tile
//
// Idea     Neighboring pixels read mostly the same elements of x: per channel, a block stages the
//          elements that its 16 x 16 pixels need in shared memory, with padding as zeros, and reads
//          the taps from shared memory.
// Changes  Against naive: an element of x is loaded once per tile and filter instead of kh kw
//          times, and taps need no bounds check.
// Cost     A load of x from shared memory and a load of w from the L1 cache per multiply-add; the
//          halo: at 3 x 3, 18 x 18 elements for 16 x 16 pixels.
// Limits   f32, images of two dimensions, one group; a tile of up to 48 KiB; no bias, no
//          activation. Each filter stages the same tile again.
// Source   W. Hwu, D. Kirk & I. El Hajj, Programming Massively Parallel Processors, 4th ed., 7.4.
#include "rung/ops/conv/shared/cuda/layer.hpp"
#include "rung/ops/conv/shared/cuda/tile_facts.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

constexpr int tile = 16;
constexpr std::int64_t max_shared = 48 << 10;

/// Returns the extent of x that the windows of a tile cover.
constexpr std::int64_t staged(const ConvAxis& axis) {
  return (tile - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1;
}

__global__ void conv_shared_tile(View<const float, 5> x, View<const float, 5> w, View<float, 5> y,
                                 ConvAxis rows, ConvAxis columns, int tiles_along_row) {
  float* const staged_x = &shared<float>();
  const int height = static_cast<int>(staged(rows));
  const int width = static_cast<int>(staged(columns));
  const std::int64_t k = blockIdx.x;
  const std::int64_t first_row = std::int64_t{blockIdx.y / tiles_along_row} * tile;
  const std::int64_t first_column = std::int64_t{blockIdx.y % tiles_along_row} * tile;
  const std::int64_t oh = first_row + threadIdx.y;
  const std::int64_t ow = first_column + threadIdx.x;
  const std::int64_t h0 = first_row * rows.stride - rows.padding;
  const std::int64_t v0 = first_column * columns.stride - columns.padding;
  const int at = static_cast<int>(threadIdx.y * rows.stride) * width +
                 static_cast<int>(threadIdx.x * columns.stride);
  for (std::int64_t n = blockIdx.z; n < y.shape[0]; n += gridDim.z) {
    float sum = 0;
    for (std::int64_t c = 0; c < x.shape[1]; ++c) {
      for (int i = static_cast<int>(threadIdx.y); i < height; i += tile) {
        for (int j = static_cast<int>(threadIdx.x); j < width; j += tile) {
          const std::int64_t h = h0 + i;
          const std::int64_t v = v0 + j;
          const bool inside = h >= 0 && h < rows.in && v >= 0 && v < columns.in;
          staged_x[i * width + j] = inside ? x(n, c, 0, h, v) : 0;
        }
      }
      __syncthreads();
      for (int i = 0; i < static_cast<int>(rows.kernel); ++i) {
        for (int j = 0; j < static_cast<int>(columns.kernel); ++j) {
          const int tap =
              i * static_cast<int>(rows.dilation) * width + j * static_cast<int>(columns.dilation);
          sum += staged_x[at + tap] * w(k, c, 0, i, j);
        }
      }
      __syncthreads();
    }
    if (oh < rows.out && ow < columns.out) y(n, k, 0, oh, ow) = sum;
  }
}

std::int64_t tiles_along(const ConvAxis& axis) { return ceil_div(axis.out, tile); }

Support supports(const Conv::Args& args, const Context&) {
  const ConvGeometry& g = args.geometry;
  if (args.x.dtype != DType::f32) return unsupported("f32 only");
  if (!is_flat(g) || g.groups != 1) return unsupported("two dimensions and one group");
  if (args.has_bias() || args.options.activation != Activation::none) {
    return unsupported("no bias, no activation");
  }
  constexpr std::int64_t max_extent = 1 << 14;  // prevents overflow of products
  if (staged(g.axis[1]) > max_extent || staged(g.axis[2]) > max_extent ||
      staged(g.axis[1]) * staged(g.axis[2]) * 4 > max_shared) {
    return unsupported("what a tile of 16 x 16 pixels reads of a channel must fit in 48 KiB");
  }
  return tiles_along(g.axis[1]) * tiles_along(g.axis[2]) <= 0xffff && g.filters <= 0x7fffffff
             ? supported
             : unsupported("up to 65535 tiles of 16 x 16 pixels");
}

LaunchExtent grid_of(const ConvGeometry& g) {
  return {g.filters, tiles_along(g.axis[1]) * tiles_along(g.axis[2]),
          smaller(g.images, std::int64_t{0xffff})};
}

void run(const Conv::Args& args, Context& context) {
  const ConvGeometry& g = args.geometry;
  const std::int64_t along_row = tiles_along(g.axis[2]);
  launch(context,
         {.grid = grid_of(g),
          .block = {tile, tile},
          .shared_bytes =
              static_cast<std::size_t>(staged(g.axis[1]) * staged(g.axis[2])) * sizeof(float)},
         conv_shared_tile, args.x.view<const float, 5>(), args.w.view<const float, 5>(),
         args.y.view<float, 5>(), g.axis[1], g.axis[2], static_cast<int>(along_row));
}

/// Returns the work of a layer. A block loads a tile of each channel, and loops over its taps. A
/// load from L2 and two barriers take as long as some sixteen taps from shared memory.
Work work(const Conv::Args& args, const Context&) {
  const ConvGeometry& g = args.geometry;
  const LaunchExtent grid = grid_of(g);
  const std::int64_t loads = ceil_div(staged(g.axis[1]), tile) * ceil_div(staged(g.axis[2]), tile);
  return block_facts(grid, ceil_div(g.images, grid.z) * g.channels * (16 * loads + g.taps()));
}

const Rung<Conv> self{{.name = "shared_tile",
                       .step = 30,
                       .after = "constant_weights",
                       .backend = device_backend,
                       .supports = supports,
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
