// SPDX-License-Identifier: Apache-2.0
// conv_backward_filter / taps in registers
//
// Idea     With few filters and channels, dw is no larger than a tile, and a product leaves most of
//          the tile empty. A block computes one filter, one channel and a slice of the pixels: its
//          threads divide the pixels, and each adds to all taps, in registers, with one load of dy
//          and one of x per tap. Their sums are combined in the order of lanes and warps, and a
//          second kernel adds the slices.
// Changes  Against implicit_gemm: no empty rows and columns, no staging in shared memory; an
//          element costs a load and a comparison instead of thirty instructions.
// Cost     k k + 1 loads per k k multiply-adds; x is read once per filter, dy once per channel,
//          from the caches if they fit.
// Limits   f32, filters of 3, 5 and 7 taps along one or two dimensions.
#include "rung/device/collectives.hpp"
#include "rung/ops/conv_backward_filter/cuda/detail/slices.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

constexpr int lanes = 32;
constexpr int warps = block_threads / lanes;
/// Number of blocks for a large device: registers allow four per SM.
constexpr std::int64_t enough_blocks = 2 * two_for_each;

template <int Taps>
struct WarpShares {
  float of[warps][Taps];
};

template <int Rows, int Columns>
__global__ void __launch_bounds__(block_threads)
    conv_backward_filter_taps_in_registers(const __grid_constant__ FilterGradient<float> p) {
  constexpr int taps = Rows * Columns;
  auto& shares = shared<WarpShares<taps>>().of;
  const ConvGeometry& g = p.g;
  const ConvAxis& rows = g.axis[1];
  const ConvAxis& columns = g.axis[2];
  const std::int64_t filter = blockIdx.x / g.group_channels();
  const std::int64_t channel = blockIdx.x - filter * g.group_channels();
  const std::int64_t group = filter / g.group_filters();
  const float* const x = p.x + (group * g.group_channels() + channel) * p.x_strides[1];
  const float* const dy = p.dy + filter * p.dy_strides[1];
  const std::int64_t down = rows.dilation * p.x_strides[3];
  const std::int64_t across = columns.dilation * p.x_strides[4];
  const PixelRange pixels = slice_of(p, blockIdx.y);
  float sums[taps] = {};
  for (std::int64_t i = pixels.begin + threadIdx.x; i < pixels.end; i += block_threads) {
    const Entry at = entry_of_pixel(p, i, pixels.end);
    const float result = dy[at.other];
    bool has_column[Columns];
#pragma unroll
    for (int b = 0; b < Columns; ++b) {
      const int v = at.v + b * static_cast<int>(columns.dilation);
      has_column[b] = static_cast<unsigned>(v) < static_cast<unsigned>(columns.in);
    }
    const float* row = x + at.image;
#pragma unroll
    for (int a = 0; a < Rows; ++a, row += down) {
      const int h = at.h + a * static_cast<int>(rows.dilation);
      const bool has_row = static_cast<unsigned>(h) < static_cast<unsigned>(rows.in);
#pragma unroll
      for (int b = 0; b < Columns; ++b) {
        const float value = has_row && has_column[b] ? row[b * across] : 0.0F;
        sums[a * Columns + b] += result * value;
      }
    }
  }
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const int warp = static_cast<int>(threadIdx.x) / lanes;
#pragma unroll
  for (int tap = 0; tap < taps; ++tap) {
    const float of_warp = warp_reduce(sums[tap], [](float a, float b) { return a + b; });
    if (lane == 0) shares[warp][tap] = of_warp;
  }
  __syncthreads();
  const auto tap = static_cast<int>(threadIdx.x);
  if (tap >= taps) return;
  float sum = 0;
  for (int w = 0; w < warps; ++w) sum += shares[w][tap];
  p.sums[(blockIdx.y * g.filters + filter) * p.terms + channel * taps + tap] = sum;
}

__global__ void __launch_bounds__(block_threads)
    conv_backward_filter_taps_in_registers_add_slices(FilterGradient<float> p, std::int64_t count) {
  add_slices<float, false>(p, count);
}

// --- on the host ---------------------------------------------------------------------------------

std::int64_t pairs_of(const ConvBackwardFilter::Args& args) {
  return args.geometry.filters * args.geometry.group_channels();
}

/// Calls f.template operator()<Rows, Columns>() with the filter's taps; returns false if no kernel
/// has these.
template <class F>
bool with_taps(const ConvGeometry& g, F&& f) {
  bool found = false;
  const auto one = [&]<int Rows, int Columns>() {
    if (g.axis[1].kernel != Rows || g.axis[2].kernel != Columns) return;
    found = true;
    f.template operator()<Rows, Columns>();
  };
  one.template operator()<1, 3>();
  one.template operator()<1, 5>();
  one.template operator()<1, 7>();
  one.template operator()<3, 3>();
  one.template operator()<5, 5>();
  one.template operator()<7, 7>();
  return found;
}

Support supports(const ConvBackwardFilter::Args& args, const Context&) {
  const ConvGeometry& g = args.geometry;
  if (args.dw.dtype != DType::f32) return unsupported("f32 only");
  if (!is_flat(g)) return unsupported("two dimensions at most");
  if (!with_taps(g, []<int, int>() {})) return unsupported("3, 5 or 7 taps, or their squares");
  constexpr std::int64_t most = 0x7fffffff;  // blocks of a grid
  if (g.filters > most || g.group_channels() > most || pairs_of(args) > most) {
    return unsupported("more than 2^31 - 1 pairs of a filter and a channel");
  }
  return supports_sliced(args, larger(g.group_filters(), std::int64_t{1}));
}

Work work(const ConvBackwardFilter::Args& args, const Context&) {
  const std::int64_t pairs = pairs_of(args);
  return register_facts(args, pairs, slices_of(args, pairs, enough_blocks), block_threads);
}

void run(const ConvBackwardFilter::Args& args, Context& context) {
  const std::int64_t pairs = pairs_of(args);
  const FilterGradient<float> p =
      sliced<float>(args, context, larger(pairs, std::int64_t{1}), enough_blocks);
  with_taps(args.geometry, [&]<int Rows, int Columns>() {
    launch(context,
           {.grid = {pairs, p.slices},
            .block = block_threads,
            .shared_bytes = sizeof(WarpShares<Rows * Columns>)},
           conv_backward_filter_taps_in_registers<Rows, Columns>, p);
  });
  launch(context, sum_grid(p), conv_backward_filter_taps_in_registers_add_slices, p,
         args.dw.size());
}

const Rung<ConvBackwardFilter> self{{.name = "taps_in_registers",
                                     .after = "warp_per_tap",
                                     .backend = device_backend,
                                     .supports = supports,
                                     .work = work,
                                     .run = run}};

}  // namespace
}  // namespace rung
