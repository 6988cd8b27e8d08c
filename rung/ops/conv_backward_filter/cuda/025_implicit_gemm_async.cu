// SPDX-License-Identifier: Apache-2.0
// conv_backward_filter / implicit GEMM, asynchronous
//
// Idea     The product over pixels with the pipeline of gemm's simt_top: cp.async copies tiles of
//          eight pixels of an image to shared memory, four tiles ahead. Each thread has one pixel
//          per tile, of which it copies eight or sixteen filters' elements of dy and as many terms
//          of x: the pixel's position, and a mask of the taps that are inside the image, are
//          computed once for all of them.
// Changes  Against implicit_gemm: up to 16 x 8 elements per thread; no table of pixels; copies to
//          shared memory bypass the registers.
// Cost     A tile of 128 filters x 128 terms: per thread and tile 1024 multiply-adds, 48 wide loads
//          from shared memory, 8 copies of dy and 8 of x. Slices as in implicit_gemm.
// Limits   f32, two dimensions at most, up to 32 taps. Images are padded to a multiple of eight
//          pixels: with 7 x 7 pixels an eighth is zeros. Filters fill tiles of 64 or 128.
// Source   gemm / simt_top; split-K: S. Chetlur et al., cuDNN, 2014.
#include <cmath>

#include "rung/ops/conv/shared/cuda/async_tiles.hpp"
#include "rung/ops/conv_backward_filter/cuda/detail/slices.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

constexpr int steps = async_steps;  // pixels per tile
constexpr TileShape shapes[] = {async_shape(128, 128, 16, 2), async_shape(64, 128, 8, 3)};

/// Iterator over a thread's pixels, one per tile.
struct PixelWalk {
  std::int64_t image;
  int pixel, row, column;  // position in dy
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

/// Returns a mask of the taps along an axis that are inside x, with the first tap at `at`.
__device__ __forceinline__ unsigned taps_inside(const ConvAxis& axis, int at) {
  unsigned bits = 0;
  unsigned bit = 1;
  for (int t = 0; t < static_cast<int>(axis.kernel); ++t, bit <<= 1) {
    bits |= static_cast<unsigned>(at) < static_cast<unsigned>(axis.in) ? bit : 0;
    at += static_cast<int>(axis.dilation);
  }
  return bits;
}

/// Tiles in flight: dy as [pixel][filter], x as [pixel][term]. Eight lanes with adjacent pixels,
/// and four such groups with adjacent rows, access different banks.
template <int Shape>
struct TilesInFlight {
  static constexpr TileShape shape = shapes[Shape];
  static constexpr int filter_pitch = shape.rows + 4;
  static constexpr int term_pitch = shape.columns + 4;
  static constexpr int apart = shape.threads() / steps;  // of a thread's filters, and terms
  static constexpr int filters = shape.rows / apart;
  static constexpr int terms = shape.columns / apart;
  static_assert(filters * apart == shape.rows && terms * apart == shape.columns);
  alignas(16) float dy[shape.stages][steps * filter_pitch];
  alignas(16) float x[shape.stages][steps * term_pitch];
};

template <int Shape>
__global__ void __launch_bounds__(shapes[Shape].threads(), shapes[Shape].blocks)
    conv_backward_filter_implicit_gemm_async(const __grid_constant__ FilterGradient<float> p) {
  constexpr TileShape shape = shapes[Shape];
  using Tile = RegisterTile<shape>;
  using Ring = TilesInFlight<Shape>;
  auto& ring = shared<Ring>();
  const ConvGeometry& g = p.g;
  const ConvAxis& height = g.axis[1];
  const ConvAxis& width = g.axis[2];
  const std::int64_t filters = g.group_filters();
  const std::int64_t down = ceil_div(filters, shape.rows);
  const std::int64_t group = blockIdx.y / down;
  const std::int64_t first_filter = blockIdx.y % down * shape.rows;
  const std::int64_t first_term = std::int64_t{blockIdx.x} * shape.columns;
  // The tiles of all images, divided among the slices as evenly as whole tiles allow.
  const std::int64_t all = g.images * ceil_div(g.results(), steps);
  const std::int64_t share = ceil_div(all, p.slices);
  const std::int64_t begin = smaller(blockIdx.z * share, all);
  const auto tiles = static_cast<int>(smaller(share, all - begin));
  typename Tile::Sums sums = {};
  if (tiles > 0) {
    const int lane = static_cast<int>(threadIdx.x) % steps;
    const int own = static_cast<int>(threadIdx.x) / steps;  // first row and first term
    PixelWalk at(g, begin);
    // dy: the pixel's elements of every `apart`-th filter.
    const float* const dy = p.dy + (group * filters + first_filter + own) * p.dy_strides[1];
    const auto filters_left =
        static_cast<int>(smaller(filters - first_filter - own, std::int64_t{shape.rows}));
    const auto copy_dy = [&](float* tile) {
      const int left = at.exists() ? filters_left : 0;
      const float* from =
          dy + at.image * p.dy_strides[0] + at.row * p.dy_strides[3] + at.column * p.dy_strides[4];
#pragma unroll
      for (int i = 0; i < Ring::filters; ++i) {
        float* const to = tile + lane * Ring::filter_pitch + own + i * Ring::apart;
        ptx::async_copy<4>(to, from, i * Ring::apart < left ? 4 : 0);
        from += Ring::apart * p.dy_strides[1];
      }
    };
    // x: the pixel's elements of every `apart`-th term: the term's offset from the pixel's first
    // tap and channel, and the bit of its tap; 0 if the term is out of range.
    const float* const x = p.x + group * g.group_channels() * p.x_strides[1];
    int offset[Ring::terms];
    unsigned tap[Ring::terms];
#pragma unroll
    for (int i = 0; i < Ring::terms; ++i) {
      std::int64_t term = first_term + own + i * Ring::apart;
      tap[i] = 0;
      offset[i] = 0;
      if (term >= p.terms) continue;
      const std::int64_t across = take_axis(term, width.kernel);
      const std::int64_t below = take_axis(term, height.kernel);
      tap[i] = 1U << (below * width.kernel + across);
      offset[i] =
          static_cast<int>(term * p.x_strides[1] + below * height.dilation * p.x_strides[3] +
                           across * width.dilation * p.x_strides[4]);
    }
    const auto gather_x = [&](float* tile) {
      const int h = at.row * static_cast<int>(height.stride) - static_cast<int>(height.padding);
      const int v = at.column * static_cast<int>(width.stride) - static_cast<int>(width.padding);
      const unsigned across = taps_inside(width, v);
      unsigned below = at.exists() ? taps_inside(height, h) : 0;
      unsigned inside = 0;
      for (int shift = 0; below != 0; below >>= 1, shift += static_cast<int>(width.kernel)) {
        inside |= (below & 1) != 0 ? across << shift : 0;
      }
      const float* const from =
          x + at.image * p.x_strides[0] + h * p.x_strides[3] + v * p.x_strides[4];
#pragma unroll
      for (int i = 0; i < Ring::terms; ++i) {
        float* const to = tile + lane * Ring::term_pitch + own + i * Ring::apart;
        ptx::async_copy<4>(to, from + offset[i], (inside & tap[i]) != 0 ? 4 : 0);
      }
    };

    // Tile copies are issued `stages - 1` tiles ahead. Each tile commits one group of copies, even
    // if empty, so that a wait for all but the last n groups always refers to the same tile.
    copy_dy(ring.dy[0]);
    gather_x(ring.x[0]);
    at.advance();
    ptx::async_commit();
#pragma unroll
    for (int stage = 1; stage < shape.stages - 1; ++stage) {
      if (stage < tiles) {
        copy_dy(ring.dy[stage]);
        gather_x(ring.x[stage]);
        at.advance();
      }
      ptx::async_commit();
    }
    // Fragments of a pixel are loaded while the previous pixel is multiplied.
    float a[2][shape.thread_rows];
    float b[2][shape.thread_columns];
    const int row = Tile::row(0);
    const int column = Tile::column(0);
    const auto load_step = [&](int stage, int step) {
      load_fragment<shape.thread_rows, shape.lanes_down() * Tile::group>(
          a[step % 2], &ring.dy[stage][step * Ring::filter_pitch + row]);
      load_fragment<shape.thread_columns, shape.lanes_along() * Tile::group>(
          b[step % 2], &ring.x[stage][step * Ring::term_pitch + column]);
    };
    int reading = 0;
    int writing = shape.stages - 1;
    ptx::async_wait<shape.stages - 2>();
    __syncthreads();
    load_step(reading, 0);
    for (int tile = 0; tile < tiles; ++tile) {
#pragma unroll
      for (int step = 0; step < steps; ++step) {
        if (step == steps - 1) {
          // After this wait and barrier the next tile has arrived for all threads, and no thread
          // still reads this tile. The last iteration loads this tile once more, without effect.
          ptx::async_wait<shape.stages - 2>();
          __syncthreads();
          const int next = reading == shape.stages - 1 ? 0 : reading + 1;
          reading = tile + 1 < tiles ? next : reading;
        }
        load_step(reading, (step + 1) % steps);
        // The copies of a tile are issued in two steps: all at once they would stall the
        // multiply-adds.
        const bool more = tile + shape.stages - 1 < tiles;
        if (step == 0 && more) gather_x(ring.x[writing]);
        if (step == 1) {
          if (more) {
            copy_dy(ring.dy[writing]);
            at.advance();
          }
          ptx::async_commit();
          writing = writing == shape.stages - 1 ? 0 : writing + 1;
        }
        multiply_add<true>(sums, a[step % 2], b[step % 2]);
      }
    }
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

/// Returns the number of blocks that are resident on a large device.
std::int64_t blocks_of(int shape) { return std::int64_t{two_for_each / 2} * shapes[shape].blocks; }

Support supports(const ConvBackwardFilter::Args& args, const Context&) {
  const ConvGeometry& g = args.geometry;
  if (args.dw.dtype != DType::f32) return unsupported("f32 only");
  if (!is_flat(g)) return unsupported("two dimensions at most");
  if (g.taps() > 32) return unsupported("filters of up to 32 taps");
  if (g.results() > max_place || g.images * ceil_div(g.results(), steps) > 0x7fffffff) {
    return unsupported("images of up to 2^28 results, and 2^31 eights of them");
  }
  // Offsets from a pixel to a term have 32 bits.
  double span =
      static_cast<double>(g.group_channels()) * std::abs(static_cast<double>(args.x.strides[1]));
  for (const int axis : {1, 2}) {
    span += static_cast<double>(g.axis[axis].kernel) * static_cast<double>(g.axis[axis].dilation) *
            std::abs(static_cast<double>(args.x.strides[2 + axis]));
  }
  if (span > 0x1p31) return unsupported("channels of an image within 2^31 elements");
  return supports_sliced(args, shapes[1].rows);
}

/// Returns the work of a layer. Images are padded to a multiple of eight pixels.
Work work(const ConvBackwardFilter::Args& args, const Context&) {
  const ConvGeometry& g = args.geometry;
  const TileShape& shape = shapes[shape_of(args)];
  return sliced_facts(args, shape.rows, shape.columns, steps, blocks_of(shape_of(args)),
                      g.images * round_up(g.results(), std::int64_t{steps}));
}

void run(const ConvBackwardFilter::Args& args, Context& context) {
  const int shape = shape_of(args);
  const FilterGradient<float> p = sliced<float>(
      args, context, tiles_of(args, shapes[shape].rows, shapes[shape].columns), blocks_of(shape));
  const auto multiply = [&]<int Shape>() {
    if (shape != Shape) return;
    LaunchShape grid =
        sliced_grid(p, shapes[Shape].rows, shapes[Shape].columns, sizeof(TilesInFlight<Shape>));
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
                                     .work = work,
                                     .run = run}};

}  // namespace
}  // namespace rung
