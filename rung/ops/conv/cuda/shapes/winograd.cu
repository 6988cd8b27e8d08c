// SPDX-License-Identifier: Apache-2.0
// conv / Winograd F(2x2, 3x3)
//
// Idea     A tile of 2 x 2 pixels of a 3 x 3 filter takes 36 multiplications directly, 16 when
//          transformed: Y = A^T ((G g G^T) . (B^T d B)) A, where the transforms are additions and
//          halvings. For each of the 16 positions of a transformed tile the sum over channels is a
//          matrix product of filters by tiles. Four kernels: filters, input, products, output.
// Changes  Against implicit_gemm: 2.25 times fewer multiplications; the operands are two matrices
//          in memory, read without decoding.
// Cost     The transformed x has four times the size of x; it is written once and read once per 64
//          filters. The products have four times the size of y; they are written and read once.
// Limits   f32, 3 x 3, stride and dilation 1, two dimensions, one group, and only with the option
//          `winograd`: cancellation gives |error| <= (C + 24) u 64 sum of max |w| max |x|; in
//          practice one bit is lost. Images are transformed a few at a time, in 256 MiB.
// Source   A. Lavin & S. Gray, Fast algorithms for convolutional neural networks, 2015.
#include "rung/ops/conv/cuda/detail/matrix.hpp"
#include "rung/ops/conv/shared/cuda/layer.hpp"
#include "rung/ops/conv/shared/cuda/tile_facts.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

using S = Shape<64, 64, false>;
constexpr int places = 16;  // per transformed tile
constexpr std::int64_t max_blocks = 0x7fffffff;
constexpr std::int64_t max_bytes = std::int64_t{256} << 20;

/// Transformed filters, tiles and products of some images of a layer.
struct Transformed {
  float* filters;   // [place][filter][channel]
  float* input;     // [place][channel][tile]
  float* products;  // [place][filter][tile]
  std::int64_t first_image;
  std::int64_t tiles;  // of all images in this batch
  std::int64_t down, across;
};

__device__ __forceinline__ void transform_input(const float (&d)[4], float (&to)[4]) {
  to[0] = d[0] - d[2];
  to[1] = d[1] + d[2];
  to[2] = d[2] - d[1];
  to[3] = d[1] - d[3];
}
__device__ __forceinline__ void transform_filter(float a, float b, float c, float (&to)[4]) {
  to[0] = a;
  to[1] = 0.5F * (a + b + c);
  to[2] = 0.5F * (a - b + c);
  to[3] = c;
}
__device__ __forceinline__ void transform_output(const float (&m)[4], float (&to)[2]) {
  to[0] = m[0] + m[1] + m[2];
  to[1] = m[1] - m[2] - m[3];
}

__global__ void __launch_bounds__(block_threads)
    conv_winograd_filters(View<const float, 5> w, float* filters, std::int64_t count) {
  const std::int64_t step = std::int64_t{gridDim.x} * block_threads;
  std::int64_t i = std::int64_t{blockIdx.x} * block_threads + threadIdx.x;
  for (; i < count; i += step) {
    std::int64_t k = i;
    const std::int64_t c = take_axis(k, w.shape[1]);
    float rows[4][3];
#pragma unroll
    for (int b = 0; b < 3; ++b) {
      float column[4];
      transform_filter(w(k, c, 0, 0, b), w(k, c, 0, 1, b), w(k, c, 0, 2, b), column);
#pragma unroll
      for (int a = 0; a < 4; ++a) rows[a][b] = column[a];
    }
#pragma unroll
    for (int a = 0; a < 4; ++a) {
      float made[4];
      transform_filter(rows[a][0], rows[a][1], rows[a][2], made);
#pragma unroll
      for (int b = 0; b < 4; ++b) filters[(a * 4 + b) * count + i] = made[b];
    }
  }
}

__global__ void __launch_bounds__(block_threads)
    conv_winograd_input(View<const float, 5> x, ConvAxis rows, ConvAxis columns, Transformed t,
                        std::int64_t count) {
  const std::int64_t step = std::int64_t{gridDim.x} * block_threads;
  std::int64_t i = std::int64_t{blockIdx.x} * block_threads + threadIdx.x;
  for (; i < count; i += step) {
    std::int64_t c = i;
    std::int64_t tile = take_axis(c, t.tiles);
    const std::int64_t v0 = take_axis(tile, t.across) * 2 - columns.padding;
    const std::int64_t h0 = take_axis(tile, t.down) * 2 - rows.padding;
    float part[4][4];
#pragma unroll
    for (int a = 0; a < 4; ++a) {
      const std::int64_t h = h0 + a;
      float d[4];
#pragma unroll
      for (int b = 0; b < 4; ++b) {
        const std::int64_t v = v0 + b;
        const bool inside = h >= 0 && h < rows.in && v >= 0 && v < columns.in;
        d[b] = inside ? x(t.first_image + tile, c, 0, h, v) : 0.0F;
      }
      transform_input(d, part[a]);
    }
#pragma unroll
    for (int b = 0; b < 4; ++b) {
      const float d[4] = {part[0][b], part[1][b], part[2][b], part[3][b]};
      float made[4];
      transform_input(d, made);
#pragma unroll
      for (int a = 0; a < 4; ++a) t.input[(a * 4 + b) * count + i] = made[a];
    }
  }
}

__global__ void __launch_bounds__(block_threads)
    conv_winograd(Transformed t, std::int64_t filters, std::int64_t channels) {
  auto& strips = shared<Strips<float, S>>();
  const std::int64_t place = blockIdx.z;
  const std::int64_t first_filter = std::int64_t{blockIdx.y} * S::rows;
  const std::int64_t first_tile = std::int64_t{blockIdx.x} * S::columns;
  MatrixStep<S> step{.a = t.filters + (place * filters + first_filter) * channels,
                     .rows = filters - first_filter,
                     .b = t.input + place * channels * t.tiles + first_tile,
                     .b_row = t.tiles,
                     .columns = t.tiles - first_tile,
                     .terms = channels};
  float sums[S::thread_rows][S::thread_columns] = {};
  int stage = 0;
  step.load(0);
  for (std::int64_t channel = 0; channel < channels; channel += S::depth, stage ^= 1) {
    step.store(strips, stage);
    __syncthreads();                // one per step: the next step uses the other stage
    step.load(channel + S::depth);  // in flight during the product
    multiply_strips<S>(strips, stage, sums);
  }
#pragma unroll
  for (int i = 0; i < S::thread_rows; ++i) {
    const std::int64_t filter = first_filter + S::row(i);
    if (filter >= filters) continue;
#pragma unroll
    for (int j = 0; j < S::thread_columns; ++j) {
      const std::int64_t tile = first_tile + S::column(j);
      if (tile < t.tiles) t.products[(place * filters + filter) * t.tiles + tile] = sums[i][j];
    }
  }
}

__global__ void __launch_bounds__(block_threads)
    conv_winograd_output(View<float, 5> y, Transformed t, Epilogue<float> epilogue,
                         std::int64_t count) {
  const std::int64_t step = std::int64_t{gridDim.x} * block_threads;
  std::int64_t i = std::int64_t{blockIdx.x} * block_threads + threadIdx.x;
  for (; i < count; i += step) {
    std::int64_t k = i;
    std::int64_t tile = take_axis(k, t.tiles);
    const std::int64_t ow = take_axis(tile, t.across) * 2;
    const std::int64_t oh = take_axis(tile, t.down) * 2;
    float part[4][2];
#pragma unroll
    for (int a = 0; a < 4; ++a) {
      float m[4];
#pragma unroll
      for (int b = 0; b < 4; ++b) m[b] = t.products[(a * 4 + b) * count + i];
      transform_output(m, part[a]);
    }
#pragma unroll
    for (int b = 0; b < 2; ++b) {
      const float m[4] = {part[0][b], part[1][b], part[2][b], part[3][b]};
      float made[2];
      transform_output(m, made);
#pragma unroll
      for (int a = 0; a < 2; ++a) {
        if (oh + a >= y.shape[3] || ow + b >= y.shape[4]) continue;
        y(t.first_image + tile, k, 0, oh + a, ow + b) = epilogue(made[a], k);
      }
    }
  }
}

Support supports(const Conv::Args& args, const Context&) {
  const ConvGeometry& g = args.geometry;
  if (!args.options.winograd) return unsupported("only where winograd is given");
  if (args.x.dtype != DType::f32 || g.groups != 1) return unsupported("f32 and one group");
  if (!is_flat(g)) return unsupported("two dimensions");
  for (const ConvAxis* axis : {&g.axis[1], &g.axis[2]}) {
    if (axis->kernel != 3 || axis->stride != 1 || axis->dilation != 1) {
      return unsupported("3 x 3, stride 1, dilation 1");
    }
  }
  const std::int64_t tiles = ceil_div(g.axis[1].out, 2) * ceil_div(g.axis[2].out, 2);
  const bool fits =
      tiles <= 0x7fffffff && ceil_div(g.filters, S::rows) <= 0xffff && g.channels <= 0x7fffffff;
  return fits ? supported : unsupported("more tiles than a grid has blocks");
}

std::int64_t tiles_of_image(const ConvGeometry& g) {
  return ceil_div(g.axis[1].out, 2) * ceil_div(g.axis[2].out, 2);
}
std::int64_t bytes_of_image(const ConvGeometry& g) {
  return Extents{places, 4, g.channels + g.filters, tiles_of_image(g)}.product();
}
std::int64_t images_at_once(const ConvGeometry& g) {
  return clamped(max_bytes / larger(bytes_of_image(g), std::int64_t{1}), std::int64_t{1}, g.images);
}

/// Returns the work of a layer. Transformed tiles are written and read.
Work work(const Conv::Args& args, const Context&) {
  const ConvGeometry& g = args.geometry;
  const std::int64_t at_once = images_at_once(g), tiles = at_once * tiles_of_image(g);
  const std::int64_t blocks = places * ceil_div(tiles, S::columns) * ceil_div(g.filters, S::rows);
  const auto turns = static_cast<double>(ceil_div(g.images, at_once));
  Work work =
      tile_facts(Conv::cost(args), {static_cast<double>(blocks), S::rows, S::columns, S::depth},
                 g.channels, 3);
  work.bytes = work.bytes + 2 * static_cast<double>(g.images * bytes_of_image(g));
  work.launches = 1 + 3 * turns;
  work.operations = work.operations * turns;
  work.rounds = work.rounds * turns;
  return work;
}

void run(const Conv::Args& args, Context& context) {
  const ConvGeometry& g = args.geometry;
  Transformed t{};
  t.down = ceil_div(g.axis[1].out, 2);
  t.across = ceil_div(g.axis[2].out, 2);
  const std::int64_t at_once = images_at_once(g);
  const std::int64_t weights = g.filters * g.channels;
  const std::int64_t weight_bytes = Extents{places, 4, weights}.product();
  auto* const memory =
      static_cast<float*>(context.workspace(static_cast<std::size_t>(weight_bytes) +
                                            static_cast<std::size_t>(bytes_of_image(g) * at_once)));
  const auto grid = [](std::int64_t count) {
    return smaller(ceil_div(count, block_threads), max_blocks);
  };
  t.filters = memory;
  launch(context, {.grid = grid(weights), .block = block_threads}, conv_winograd_filters,
         args.w.view<const float, 5>(), t.filters, weights);
  for (std::int64_t n = 0; n < g.images; n += at_once) {
    t.first_image = n;
    t.tiles = smaller(at_once, g.images - n) * tiles_of_image(g);
    t.input = memory + places * weights;
    t.products = t.input + places * g.channels * t.tiles;
    const std::int64_t read = g.channels * t.tiles;
    const std::int64_t made = g.filters * t.tiles;
    launch(context, {.grid = grid(read), .block = block_threads}, conv_winograd_input,
           args.x.view<const float, 5>(), g.axis[1], g.axis[2], t, read);
    launch(context,
           {.grid = {ceil_div(t.tiles, S::columns), ceil_div(g.filters, S::rows), places},
            .block = block_threads,
            .shared_bytes = sizeof(Strips<float, S>)},
           conv_winograd, t, g.filters, g.channels);
    launch(context, {.grid = grid(made), .block = block_threads}, conv_winograd_output,
           args.y.view<float, 5>(), t, epilogue_of<float>(args), made);
  }
}

const Rung<Conv> self{{.name = "winograd",
                       .after = "implicit_gemm",
                       .backend = device_backend,
                       .supports = supports,
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
