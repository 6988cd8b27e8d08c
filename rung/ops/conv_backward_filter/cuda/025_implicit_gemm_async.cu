// SPDX-License-Identifier: Apache-2.0
// conv_backward_filter / implicit GEMM, asynchronous
//
// Idea     the product over pixels by the pipeline of gemm's simt_top: cp.async brings tiles of
//          eight pixels of an image to shared memory, four tiles ahead. A thread has one pixel of
//          each tile, of which it copies eight or sixteen filters' results and as many terms of x:
//          where the pixel is, and which taps are inside, a bit each, is found once for all of
//          them.
// Changes  against implicit_gemm: up to 16 x 8 elements per thread; no table of pixels; copies to
//          shared memory bypass the registers.
// Cost     a tile of 128 filters x 128 terms: per thread and tile 1024 multiply-adds, 48 wide loads
//          from shared memory, 8 copies of dy and 8 of x. Slices as in implicit_gemm.
// Limits   f32, two dimensions at most, up to 32 taps. Images are cut into eights of pixels: of 7 x
//          7 an eighth is zeros. Filters fill tiles of 64 or 128.
// Tried    -
// Source   gemm / simt_top; split-K: S. Chetlur et al., cuDNN, 2014.
#include <cmath>

#include "rung/ops/conv_backward_filter/cuda/detail/slices.hpp"
#include "rung/ops/gemm/cuda/detail/async.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

constexpr int steps = 8;  // pixels of a tile
constexpr gemm_cuda::TileShape shapes[] = {{.rows = 128,
                                            .columns = 128,
                                            .steps = steps,
                                            .warp_rows = 64,
                                            .warp_columns = 64,
                                            .thread_rows = 16,
                                            .thread_columns = 8,
                                            .stages = 5,
                                            .blocks = 2},
                                           {.rows = 64,
                                            .columns = 128,
                                            .steps = steps,
                                            .warp_rows = 32,
                                            .warp_columns = 64,
                                            .thread_rows = 8,
                                            .thread_columns = 8,
                                            .stages = 5,
                                            .blocks = 3}};
// What each is taken to reach of the multiply-add peak where dw is large.
constexpr double fractions[] = {0.56, 0.52};

/// A thread's pixel of one tile after another.
struct PixelWalk {
  std::int64_t image;
  int pixel, row, column;  // of dy
  int pixels, width;       // of an image

  __device__ __forceinline__ PixelWalk(const ConvGeometry& g, std::int64_t first_tile)
      : pixels(static_cast<int>(g.results())), width(static_cast<int>(g.axis[2].out)) {
    const std::int64_t of_image = ceil_div(pixels, steps);
    image = first_tile / of_image;
    pixel = static_cast<int>(first_tile - image * of_image) * steps +
            static_cast<int>(threadIdx.x) % steps;
    place();
  }
  [[nodiscard]] __device__ __forceinline__ bool exists() const { return pixel < pixels; }

  __device__ __forceinline__ void advance() {
    const int lane = static_cast<int>(threadIdx.x) % steps;
    pixel += steps;
    if (pixel - lane >= pixels) {
      pixel = lane;
      ++image;
      return place();
    }
    column += steps;
    while (column >= width) {
      column -= width;
      ++row;
    }
  }

 private:
  __device__ __forceinline__ void place() {
    row = pixel / width;
    column = pixel - row * width;
  }
};

/// Elements from a step to the next in shared memory: eight lanes with neighboring steps, and four
/// such groups with neighboring rows, are in different banks.
template <int Extent>
constexpr int step_pitch = Extent + 4;

/// Copies tiles [pixel][filter] of dy.
template <int Filters, int Threads>
class ResultTile {
  static constexpr int apart = Threads / steps;
  static constexpr int count = Filters / apart;
  static_assert(count * apart == Filters);

  const FilterGradient<float>& p_;
  const float* dy_;  // of this thread's first filter
  PixelWalk at_;
  int to_;
  int filters_;  // from the first one on

 public:
  static constexpr int pitch = step_pitch<Filters>;
  static constexpr int elements = steps * pitch;

  __device__ __forceinline__ ResultTile(const FilterGradient<float>& p, std::int64_t group,
                                        std::int64_t first_filter, std::int64_t first_tile)
      : p_(p), at_(p.g, first_tile) {
    const int row = static_cast<int>(threadIdx.x) / steps;
    dy_ = p.dy + (group * p.g.group_filters() + first_filter + row) * p.dy_strides[1];
    to_ = static_cast<int>(threadIdx.x) % steps * pitch + row;
    filters_ =
        static_cast<int>(smaller(p.g.group_filters() - first_filter - row, std::int64_t{Filters}));
  }

  __device__ __forceinline__ void copy(float* tile) {
    const int filters = at_.exists() ? filters_ : 0;
    const float* from = dy_ + at_.image * p_.dy_strides[0] + at_.row * p_.dy_strides[3] +
                        at_.column * p_.dy_strides[4];
#pragma unroll
    for (int i = 0; i < count; ++i) {
      ptx::async_copy<4>(tile + to_ + i * apart, from, i * apart < filters ? 4 : 0);
      from += apart * p_.dy_strides[1];
    }
    at_.advance();
  }
  __device__ __forceinline__ void copy_first(float* tile, int) { copy(tile); }
};

/// Copies tiles [pixel][term] of x.
template <int Terms, int Threads>
class TermTile {
  static constexpr int apart = Threads / steps;
  static constexpr int count = Terms / apart;
  static_assert(count * apart == Terms);

  const FilterGradient<float>& p_;
  const float* x_;
  PixelWalk at_;
  int to_;
  int offset_[count];    // from the pixel's first tap and channel to the term
  unsigned tap_[count];  // its bit; none where there is no such term

 public:
  static constexpr int pitch = step_pitch<Terms>;
  static constexpr int elements = steps * pitch;

  __device__ __forceinline__ TermTile(const FilterGradient<float>& p, std::int64_t group,
                                      std::int64_t first_term, std::int64_t first_tile)
      : p_(p), x_(p.x + group * p.g.group_channels() * p.x_strides[1]), at_(p.g, first_tile) {
    const int row = static_cast<int>(threadIdx.x) / steps;
    to_ = static_cast<int>(threadIdx.x) % steps * pitch + row;
    const ConvAxis& height = p.g.axis[1];
    const ConvAxis& width = p.g.axis[2];
#pragma unroll
    for (int i = 0; i < count; ++i) {
      std::int64_t term = first_term + row + i * apart;
      tap_[i] = 0;
      offset_[i] = 0;
      if (term >= p.terms) continue;
      const std::int64_t across = take_axis(term, width.kernel);
      const std::int64_t down = take_axis(term, height.kernel);
      tap_[i] = 1U << (down * width.kernel + across);
      offset_[i] =
          static_cast<int>(term * p.x_strides[1] + down * height.dilation * p.x_strides[3] +
                           across * width.dilation * p.x_strides[4]);
    }
  }

  __device__ __forceinline__ void copy(float* tile) {
    const ConvAxis& height = p_.g.axis[1];
    const ConvAxis& width = p_.g.axis[2];
    const int h = at_.row * static_cast<int>(height.stride) - static_cast<int>(height.padding);
    const int v = at_.column * static_cast<int>(width.stride) - static_cast<int>(width.padding);
    const unsigned across = inside(width, v);
    unsigned down = at_.exists() ? inside(height, h) : 0;
    unsigned taps = 0;
    for (int shift = 0; down != 0; down >>= 1, shift += static_cast<int>(width.kernel)) {
      taps |= (down & 1) != 0 ? across << shift : 0;
    }
    const float* const from =
        x_ + at_.image * p_.x_strides[0] + h * p_.x_strides[3] + v * p_.x_strides[4];
#pragma unroll
    for (int i = 0; i < count; ++i) {
      ptx::async_copy<4>(tile + to_ + i * apart, from + offset_[i], (taps & tap_[i]) != 0 ? 4 : 0);
    }
    at_.advance();
  }
  __device__ __forceinline__ void copy_first(float* tile, int) { copy(tile); }

 private:
  /// A bit for each tap along an axis, from its first one on.
  static __device__ __forceinline__ unsigned inside(const ConvAxis& axis, int at) {
    unsigned bits = 0;
    unsigned bit = 1;
    for (int t = 0; t < static_cast<int>(axis.kernel); ++t, bit <<= 1) {
      bits |= static_cast<unsigned>(at) < static_cast<unsigned>(axis.in) ? bit : 0;
      at += static_cast<int>(axis.dilation);
    }
    return bits;
  }
};

template <int Shape>
using TileOf =
    gemm_cuda::TilePipeline<shapes[Shape], ResultTile<shapes[Shape].rows, shapes[Shape].threads()>,
                            TermTile<shapes[Shape].columns, shapes[Shape].threads()>, true>;

template <int Shape>
__global__ void __launch_bounds__(shapes[Shape].threads(), shapes[Shape].blocks)
    conv_backward_filter_implicit_gemm_async(const __grid_constant__ FilterGradient<float> p) {
  constexpr gemm_cuda::TileShape shape = shapes[Shape];
  using Tile = TileOf<Shape>;
  const ConvGeometry& g = p.g;
  const std::int64_t filters = g.group_filters();
  const std::int64_t down = ceil_div(filters, shape.rows);
  const std::int64_t group = blockIdx.y / down;
  const std::int64_t first_filter = blockIdx.y % down * shape.rows;
  const std::int64_t first_term = std::int64_t{blockIdx.x} * shape.columns;
  // Tiles of a slice: those of all images, shared as evenly as whole tiles can be.
  const std::int64_t tiles = g.images * ceil_div(g.results(), steps);
  const std::int64_t share = ceil_div(tiles, p.slices);
  const std::int64_t begin = smaller(blockIdx.z * share, tiles);
  const std::int64_t count = smaller(share, tiles - begin);
  typename Tile::Sums sums = {};
  if (count > 0) {
    ResultTile<shape.rows, shape.threads()> results(p, group, first_filter, begin);
    TermTile<shape.columns, shape.threads()> terms(p, group, first_term, begin);
    Tile::accumulate(results, terms, static_cast<int>(count), steps, sums);
  }
#pragma unroll
  for (int i = 0; i < shape.thread_rows; ++i) {
    const std::int64_t filter = first_filter + Tile::row(i);
    if (filter >= filters) continue;
    float* const to = p.sums + ((blockIdx.z * g.groups + group) * filters + filter) * p.terms;
#pragma unroll
    for (int j = 0; j < shape.thread_columns; ++j) {
      const std::int64_t term = first_term + Tile::column(j);
      if (term < p.terms) to[term] = sums[i][j];
    }
  }
}

__global__ void __launch_bounds__(block_threads)
    conv_backward_filter_add_slices(FilterGradient<float> p, std::int64_t count) {
  add_slices<float, false>(p, count);
}

int shape_of(const ConvBackwardFilter::Args& args) {
  return args.geometry.group_filters() > shapes[1].rows ? 0 : 1;
}

/// As many as a large device holds at a time.
std::int64_t blocks_of(int shape) { return std::int64_t{two_for_each / 2} * shapes[shape].blocks; }

Support supports(const ConvBackwardFilter::Args& args, const Context&) {
  const ConvGeometry& g = args.geometry;
  if (args.dw.dtype != DType::f32) return unsupported("f32 only");
  if (!is_flat(g)) return unsupported("two dimensions at most");
  if (g.taps() > 32) return unsupported("filters of up to 32 taps");
  if (g.results() > max_place || g.images * ceil_div(g.results(), steps) > 0x7fffffff) {
    return unsupported("images of up to 2^28 results, and 2^31 eights of them");
  }
  // From a pixel to a term in 32 bits.
  double span =
      static_cast<double>(g.group_channels()) * std::abs(static_cast<double>(args.x.strides[1]));
  for (const int axis : {1, 2}) {
    span += static_cast<double>(g.axis[axis].kernel) * static_cast<double>(g.axis[axis].dilation) *
            std::abs(static_cast<double>(args.x.strides[2 + axis]));
  }
  if (span > 0x1p31) return unsupported("channels of an image within 2^31 elements");
  return supports_sliced(args, shapes[1].rows);
}

double estimate(const ConvBackwardFilter::Args& args, const Context& context) {
  const ConvGeometry& g = args.geometry;
  const int shape = shape_of(args);
  // Images are cut into eights of pixels; lanes that copy from far apart wait for each other.
  const double far = args.x.strides[4] * g.axis[2].stride > 4 && g.axis[2].out > 1 ? 2 : 1;
  const double pixels = far * static_cast<double>(g.images) *
                        static_cast<double>(round_up(g.results(), std::int64_t{steps}));
  return sliced_seconds(
      args, context, shapes[shape].rows, shapes[shape].columns, blocks_of(shape), pixels,
      {.start = 14e-6, .of_step = 0.35e-6, .step = steps, .peak = fractions[shape]});
}

void run(const ConvBackwardFilter::Args& args, Context& context) {
  const int shape = shape_of(args);
  const FilterGradient<float> p = sliced<float>(
      args, context, tiles_of(args, shapes[shape].rows, shapes[shape].columns), blocks_of(shape));
  const auto multiply = [&]<int Shape>() {
    if (shape != Shape) return;
    LaunchShape grid = sliced_grid(p, shapes[Shape].rows, shapes[Shape].columns,
                                   sizeof(typename TileOf<Shape>::Stages));
    grid.block = shapes[Shape].threads();
    launch(context, grid, conv_backward_filter_implicit_gemm_async<Shape>, p);
  };
  multiply.template operator()<0>();
  multiply.template operator()<1>();
  launch(context, sum_grid(p), conv_backward_filter_add_slices, p, args.dw.size());
}

const Rung<ConvBackwardFilter> self{{.name = "implicit_gemm_async",
                                     .step = 25,
                                     .after = "implicit_gemm",
                                     .backend = device_backend,
                                     .supports = supports,
                                     .estimate = estimate,
                                     .run = run}};

}  // namespace
}  // namespace rung
