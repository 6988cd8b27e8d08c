// SPDX-License-Identifier: Apache-2.0
// conv / small channels
//
// Idea     with one to four channels a product has too few terms for its tiles to pay, and x is
//          large beside w. A block stages what 32 x 32 pixels need of all channels, and all
//          filters' weights, in shared memory once; then each thread makes four pixels - eight rows
//          apart, so that a warp reads neighbouring words - of four filters at a time.
// Changes  against implicit_gemm: no element of x is decoded or loaded per term, and the tile
//          serves all filters; shared_tile's idea, with sixteen sums per thread.
// Cost     per tap and channel four loads of x and a wide one of w from shared memory for sixteen
//          multiply-adds; the halo: at 7 x 7, 38 x 38 elements for 32 x 32 pixels.
// Limits   up to 4 channels, one group, images of two dimensions; what is staged must fit in shared
//          memory. f32, f16, bf16.
// Tried    -
// Source   -
#include "rung/ops/conv/cuda/detail/small_channels.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

constexpr int tile = 32;
constexpr int block_rows = 8;
constexpr int thread_pixels = tile / block_rows;
constexpr int thread_filters = 4;
constexpr int threads = tile * block_rows;
constexpr std::int64_t max_extent = 1 << 12;  // of what is staged, so that no product overflows

/// Extent of x that a tile's windows are in.
constexpr RUNG_HD std::int64_t staged(const ConvAxis& axis) {
  return (tile - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1;
}

template <class T>
__global__ void __launch_bounds__(threads)
    conv_small_channels(Layer<T> p, int tiles_along_row, int padded_filters) {
  const ConvAxis& rows = p.geometry.axis[1];
  const ConvAxis& columns = p.geometry.axis[2];
  const int channels = static_cast<int>(p.geometry.channels);
  const int filters = static_cast<int>(p.geometry.filters);
  const int taps = static_cast<int>(rows.kernel * columns.kernel);
  const int height = static_cast<int>(staged(rows));
  const int width = static_cast<int>(staged(columns));
  // [channel][tap][filter], then [channel][row][column].
  float* const weights = &shared<float>();
  float* const image = weights + channels * taps * padded_filters;
  const std::int64_t first_row = std::int64_t{blockIdx.x} / tiles_along_row * tile;
  const std::int64_t first_column = std::int64_t{blockIdx.x} % tiles_along_row * tile;
  const std::int64_t h0 = first_row * rows.stride - rows.padding;
  const std::int64_t v0 = first_column * columns.stride - columns.padding;
  const int lane = static_cast<int>(threadIdx.x);
  const int warp = static_cast<int>(threadIdx.y);

  for (int i = warp * tile + lane; i < channels * taps * padded_filters; i += threads) {
    const int k = i % padded_filters;
    const int tap = i / padded_filters % taps;
    const int across = static_cast<int>(columns.kernel);
    const int c = i / padded_filters / taps;
    weights[i] = k < filters ? convert<float>(p.w(k, c, 0, tap / across, tap % across)) : 0.0F;
  }
  for (std::int64_t n = blockIdx.y; n < p.geometry.images; n += gridDim.y) {
    for (int i = warp; i < channels * height; i += block_rows) {
      const int c = i / height;
      const std::int64_t h = h0 + i % height;
      for (int j = lane; j < width; j += tile) {
        const std::int64_t v = v0 + j;
        const bool inside = h >= 0 && h < rows.in && v >= 0 && v < columns.in;
        image[i * width + j] = inside ? convert<float>(p.x(n, c, 0, h, v)) : 0.0F;
      }
    }
    __syncthreads();
    const int row_step = block_rows * static_cast<int>(rows.stride) * width;
    for (int k = 0; k < filters; k += thread_filters) {
      float sums[thread_filters][thread_pixels] = {};
      for (int c = 0; c < channels; ++c) {
        const float* at = image + (c * height + warp * static_cast<int>(rows.stride)) * width +
                          lane * static_cast<int>(columns.stride);
        const float* weight = weights + c * taps * padded_filters + k;
        for (int i = 0; i < static_cast<int>(rows.kernel); ++i) {
          const float* tap = at + i * static_cast<int>(rows.dilation) * width;
          for (int j = 0; j < static_cast<int>(columns.kernel); ++j) {
            const Pack<float, thread_filters> w = load_wide<thread_filters>(weight);
#pragma unroll
            for (int r = 0; r < thread_pixels; ++r) {
              const float x = tap[r * row_step];
#pragma unroll
              for (int f = 0; f < thread_filters; ++f) sums[f][r] += w[f] * x;
            }
            tap += columns.dilation;
            weight += padded_filters;
          }
        }
      }
      const std::int64_t ow = first_column + lane;
#pragma unroll
      for (int r = 0; r < thread_pixels; ++r) {
        const std::int64_t oh = first_row + warp + r * block_rows;
        if (oh >= rows.out || ow >= columns.out) continue;
#pragma unroll
        for (int f = 0; f < thread_filters; ++f) {
          if (k + f < filters) p.y(n, k + f, 0, oh, ow) = p.epilogue(sums[f][r], k + f);
        }
      }
    }
    __syncthreads();
  }
}

std::int64_t padded_filters(const ConvGeometry& g) { return round_up(g.filters, thread_filters); }

std::int64_t shared_bytes(const ConvGeometry& g) {
  return 4 * g.channels * (staged(g.axis[1]) * staged(g.axis[2]) + g.taps() * padded_filters(g));
}

}  // namespace

Support conv_cuda::supports_small_channels(const Conv::Args& args, const Context& context) {
  const ConvGeometry& g = args.geometry;
  if (args.x.dtype == DType::f64) return unsupported("f32, f16 and bf16");
  if (!is_flat(g) || g.groups != 1) return unsupported("two dimensions and one group");
  if (g.channels < 1 || g.channels > 4) return unsupported("1 to 4 channels");
  const bool small = staged(g.axis[1]) <= max_extent && staged(g.axis[2]) <= max_extent &&
                     g.filters <= max_extent && g.taps() <= max_extent;
  if (!small || shared_bytes(g) > static_cast<std::int64_t>(context.info().shared_per_block)) {
    return unsupported("what 32 x 32 pixels read, and all weights, must fit in shared memory");
  }
  return ceil_div(g.axis[1].out, tile) * ceil_div(g.axis[2].out, tile) <= 0x7fffffff
             ? supported
             : unsupported("more tiles than a grid has blocks");
}

double conv_cuda::small_channels_seconds(const Conv::Args& args, const Context& context) {
  const ConvGeometry& g = args.geometry;
  Cost cost = Conv::cost(args);
  // Pixels that tiles have beyond the image, and filters beyond the last.
  const auto filled = [](std::int64_t extent, std::int64_t step) {
    return static_cast<double>(round_up(extent, step)) / static_cast<double>(extent);
  };
  cost.operations *= filled(g.axis[1].out, tile) * filled(g.axis[2].out, tile) *
                     filled(larger(g.filters, std::int64_t{1}), thread_filters);
  const double resident = shared_bytes(g) > (64 << 10) ? 0.25 : 0.4;
  // A block makes all filters of its pixels, one quartet after another.
  const double waiting =
      6e-6 + static_cast<double>(g.filters) * (0.6e-6 + 0.055e-6 * static_cast<double>(g.taps()));
  return larger(estimate_seconds(cost, {.peak = resident}, context), waiting);
}

void conv_cuda::run_small_channels(const Conv::Args& args, Context& context) {
  const ConvGeometry& g = args.geometry;
  const std::int64_t along_row = ceil_div(g.axis[2].out, tile);
  visit<float, f16, bf16>(args.x.dtype, [&]<class T>() {
    launch(context,
           {.grid = {ceil_div(g.axis[1].out, tile) * along_row,
                     smaller(g.images, std::int64_t{0xffff})},
            .block = {tile, block_rows},
            .shared_bytes = static_cast<std::size_t>(shared_bytes(g))},
           conv_small_channels<T>, layer_of<T>(args), static_cast<int>(along_row),
           static_cast<int>(padded_filters(g)));
  });
}

namespace {

const Rung<Conv> self{{.name = "small_channels",
                       .step = 70,
                       .after = "implicit_gemm",
                       .backend = device_backend,
                       .supports = supports_small_channels,
                       .estimate = small_channels_seconds,
                       .run = run_small_channels}};

}  // namespace
}  // namespace rung
