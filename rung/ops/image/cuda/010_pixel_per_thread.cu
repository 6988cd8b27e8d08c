// SPDX-License-Identifier: Apache-2.0
// image / pixel per thread
//
// Idea     One thread per pixel: it loads the pixel, or the window around it, channel by channel,
//          and stores one pixel. Outside the picture it uses the nearest pixel of the border, or 0.
// Changes  Baseline.
// Cost     Grey: 3 loads and one store of single bytes per pixel; a warp loads 96 bytes by three
//          instructions, each of which touches all sectors of these 96 bytes. T x T blurs: T^2
//          loads per result, mostly from L1.
// Limits   Every valid call. Bound by load instructions and index arithmetic.
// Source   D. Kirk, W. Hwu and I. El Hajj, Programming Massively Parallel Processors, chapter 3.
#include "rung/core/bounds.hpp"
#include "rung/core/integer.hpp"
#include "rung/ops/image/cuda/detail/filter.hpp"

namespace rung {
namespace {

using namespace image_cuda;

template <class T>
struct Pixels {
  const T* x;
  T* y;
  std::int64_t rows, columns;
  int channels;  // filtered channels of y
  int alpha;     // index of the copied channel of x; -1: none
  Image::Strides from, to;
  Collapsed<2> pictures;
  Filter<T> filter;
};

constexpr int block_threads = 256;

__device__ __forceinline__ std::int64_t inside(std::int64_t i, std::int64_t extent) {
  return i < 0 ? 0 : i < extent ? i : extent - 1;
}

template <class T>
__global__ void __launch_bounds__(block_threads)
    image_pixel_per_thread(const __grid_constant__ Pixels<T> p, std::int64_t pixels) {
  using Sum = typename Filter<T>::Sum;
  const std::int64_t threads = std::int64_t{gridDim.x} * block_threads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * block_threads + threadIdx.x; i < pixels;
       i += threads) {
    const std::int64_t row_of_all = i / p.columns;
    const std::int64_t column = i - row_of_all * p.columns;
    const std::int64_t picture = row_of_all / p.rows;
    const std::int64_t row = row_of_all - picture * p.rows;
    std::int64_t first[2];
    p.pictures.offsets(picture, first);
    const T* const x = p.x + first[0];
    T* const y = p.y + first[1] + row * p.to.row + column * p.to.column;
    const auto at = [&](int k, int l, int channel) {
      if (p.filter.zero_edges) {
        const bool is_inside =
            row + k >= 0 && row + k < p.rows && column + l >= 0 && column + l < p.columns;
        if (!is_inside) return Sum{0};
      }
      return static_cast<Sum>(
          x[inside(row + k, p.rows) * p.from.row + inside(column + l, p.columns) * p.from.column +
            channel * p.from.channel]);
    };
    for (int c = 0; c < p.channels; ++c) {
      T& result = y[c * p.to.channel];
      if (p.filter.kind == ImageFilter::grey) {
        result = p.filter.grey(at(0, 0, 0), at(0, 0, 1), at(0, 0, 2));
      } else if (p.filter.kind == ImageFilter::sobel) {
        result = p.filter.sobel([&](int k, int l) { return at(k, l, c); });
      } else {
        const int radius = p.filter.radius;
        Sum sum = 0;
        for (int k = -radius; k <= radius; ++k) {
          Sum along_row = 0;
          for (int l = -radius; l <= radius; ++l) {
            along_row += p.filter.weight[l < 0 ? -l : l] * at(k, l, c);
          }
          sum += p.filter.weight[k < 0 ? -k : k] * along_row;
        }
        const Sum blur = p.filter.blurred(sum);
        const bool is_sharpened = p.filter.kind == ImageFilter::unsharp;
        result = is_sharpened ? p.filter.sharpened(at(0, 0, c), blur) : static_cast<T>(blur);
      }
    }
    if (p.alpha >= 0) y[p.channels * p.to.channel] = static_cast<T>(at(0, 0, p.alpha));
  }
}

std::int64_t blocks_of(const Image::Args& args) {
  constexpr std::int64_t max_blocks = std::int64_t{1} << 22;
  return smaller(ceil_div(args.pixels(), block_threads), max_blocks);
}

/// Returns the work of the launch. Windows of Sobel are 3 x 3 pixels.
Work work(const Image::Args& args, const Context&) {
  const ImageFilter filter = args.filter();
  const std::int64_t taps = filter == ImageFilter::sobel ? 3 : args.taps();
  return {.blocks = blocks_of(args),
          .resident = 8,
          .steps = args.out_channels * taps * taps,
          .path = filter == ImageFilter::grey    ? "grey"
                  : filter == ImageFilter::sobel ? "sobel"
                                                 : ""};
}

void run(const Image::Args& args, Context& context) {
  const std::int64_t pixels = args.pixels();
  visit<std::uint8_t, float>(args.x.dtype, [&]<class T>() {
    const int alpha = args.copied_alpha();
    const Pixels<T> p{.x = static_cast<const T*>(args.x.data),
                      .y = static_cast<T*>(args.y.data),
                      .rows = args.rows,
                      .columns = args.columns,
                      .channels = alpha < 0 ? args.out_channels : args.out_channels - 1,
                      .alpha = alpha,
                      .from = args.from,
                      .to = args.to,
                      .pictures = args.pictures,
                      .filter = filter_of<T>(args)};
    launch(context, {.grid = blocks_of(args), .block = block_threads}, image_pixel_per_thread<T>, p,
           pixels);
  });
}

const Rung<Image> self{
    {.name = "pixel_per_thread", .step = 10, .backend = device_backend, .work = work, .run = run}};

}  // namespace
}  // namespace rung
