// SPDX-License-Identifier: Apache-2.0
// image / vectorized, interleaved
//
// Idea     Grey of 16 pixels (f32: 4) per thread: 48 or 64 bytes of x, 16 bytes of y. Pixels of
//          three channels straddle 16-byte boundaries, so a warp copies its pixels to shared memory
//          as they are, 16 bytes per lane, and each lane then reads its own pixels. Planar pictures
//          need no exchange.
// Changes  Against pixel_per_thread (the rungs between are for filters with a neighborhood): one
//          16-byte store instead of 16 stores; 3 or 4 loads of whole sectors instead of 48.
// Cost     x read once, y written once; one store to and one load from shared memory per 16 bytes,
//          without bank conflicts.
// Limits   Grey; contiguous pixels. Rows of any alignment: x is shifted into place in registers,
//          and lanes begin where y is aligned. Alpha at odd addresses is written element by
//          element.
// Source   V. Volkov, Better performance at lower occupancy, GTC 2010; J. Luitjens, CUDA Pro Tip:
//          Increase Performance with Vectorized Memory Access, 2013 (coalescing by exchange).
#include "rung/device/load_anywhere.hpp"
#include "rung/ops/image/cuda/detail/rows.hpp"

namespace rung {
namespace {

using namespace image_cuda;

constexpr int lanes = 32, warps = 8;

/// Kernel parameters. A line is a row, a picture whose rows are contiguous, or a contiguous batch
/// of pictures.
template <class T>
struct Lines {
  const T* x;
  T* y;
  std::int64_t pixels;  // per line
  std::int64_t x_plane, y_plane;
  int out_channels;
  Collapsed<2> lines;
  Filter<T> filter;
};

/// Returns the position in shared memory of chunk i, which lane i / each uses. Padding avoids bank
/// conflicts: with two or four chunks per lane, eight lanes would otherwise use four or two of the
/// eight 16-byte bank groups.
template <int each>
__device__ __forceinline__ int place_of(int i) {
  return each % 2 == 0 ? i + i / 8 : i;
}
template <int channels>
constexpr int places = channels == 4 ? 4 * lanes + 4 * lanes / 8 : channels* lanes;

template <class T, int channels, bool planar>
__global__ void __launch_bounds__(lanes* warps)
    image_vectorized_interleaved(const __grid_constant__ Lines<T> p, std::int64_t line_count) {
  constexpr int n = vector_width<T>;
  const int lane = static_cast<int>(threadIdx.x);
  const int warp = static_cast<int>(threadIdx.y);
  T* const exchange = &shared<T>() + warp * (places<channels> * n);
  const int out = p.out_channels;
  for (std::int64_t line = blockIdx.y; line < line_count; line += gridDim.y) {
    std::int64_t begin[2];
    p.lines.offsets(line, begin);
    const T* const x = p.x + begin[0];
    T* const y = p.y + begin[1];
    // The first lane begins at the last aligned address at or before y's first pixel.
    const int behind = static_cast<int>(reinterpret_cast<std::uintptr_t>(y) % 16 / sizeof(T));
    const std::int64_t warp_first =
        (std::int64_t{blockIdx.x} * warps + warp) * (lanes * n) - behind / (planar ? 1 : out);
    if (warp_first >= p.pixels) continue;  // the whole warp
    const std::int64_t first = warp_first + lane * n;

    Pack<T, n> pixel[channels];  // as stored in x: n pixels, or n elements of each plane
    if constexpr (planar) {
#pragma unroll
      for (int c = 0; c < channels; ++c) {
        pixel[c] = unpack(load_anywhere<n>(x + c * p.x_plane, first, p.pixels));
      }
    } else {
#pragma unroll
      for (int c = 0; c < channels; ++c) {
        const int i = c * lanes + lane;
        store_raw(exchange + place_of<channels>(i) * n,
                  load_anywhere<n>(x, warp_first * channels + i * n, p.pixels * channels));
      }
      __syncwarp();
#pragma unroll
      for (int c = 0; c < channels; ++c) {
        pixel[c] = load_wide<n>(exchange + place_of<channels>(lane * channels + c) * n);
      }
      __syncwarp();
    }
    const auto at = [&](int i, int c) {
      using Sum = typename Filter<T>::Sum;
      const T element =
          planar ? pixel[c][i] : pixel[(i * channels + c) / n][(i * channels + c) % n];
      return static_cast<Sum>(element);
    };
    Pack<T, n> grey;
#pragma unroll
    for (int i = 0; i < n; ++i) grey[i] = p.filter.grey(at(i, 0), at(i, 1), at(i, 2));

    const auto put = [&](T* to, const Pack<T, n>& values, std::int64_t where, std::int64_t count) {
      if (where >= 0 && where + n <= count && is_wide_aligned<T, n>(to + where)) {
        store_wide<n>(to + where, values);
      } else {
#pragma unroll
        for (int i = 0; i < n; ++i) {
          if (where + i >= 0 && where + i < count) to[where + i] = values[i];
        }
      }
    };
    if (out == 1) {
      put(y, grey, first, p.pixels);
    } else if constexpr (channels == 4) {
      Pack<T, n> both[2];  // grey and alpha interleaved, or n of each
#pragma unroll
      for (int i = 0; i < n; ++i) {
        const T alpha = planar ? pixel[3][i] : pixel[(4 * i + 3) / n][(4 * i + 3) % n];
        both[planar ? 0 : 2 * i / n][planar ? i : 2 * i % n] = grey[i];
        both[planar ? 1 : (2 * i + 1) / n][planar ? i : (2 * i + 1) % n] = alpha;
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        if constexpr (planar) {
          put(y + half * p.y_plane, both[half], first, p.pixels);
        } else {
          store_wide<n>(exchange + place_of<2>(2 * lane + half) * n, both[half]);
        }
      }
      if constexpr (!planar) {
        __syncwarp();
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int i = half * lanes + lane;
          const Pack<T, n> values = load_wide<n>(exchange + place_of<2>(i) * n);
          put(y, values, 2 * warp_first + i * n, 2 * p.pixels);
        }
        // No barrier before the next line: a lane overwrites only what it has read itself.
      }
    }
  }
}

bool is_planar(const Image::Args& args) {
  return args.columns == 1 || (args.from.column == 1 && args.to.column == 1);
}
bool lies_interleaved(const Image::Args& args) {
  const auto lies_so = [&](const Image::Strides& strides, int channels) {
    return (channels == 1 || strides.channel == 1) &&
           (args.columns == 1 || strides.column == channels);
  };
  return lies_so(args.from, args.channels) && lies_so(args.to, args.out_channels);
}

Support supports(const Image::Args& args, const Context&) {
  if (args.filter() != ImageFilter::grey) return unsupported("takes grey");
  return lies_interleaved(args) || is_planar(args)
             ? supported
             : unsupported("pixels, or the rows of planes, must be contiguous");
}

template <class T>
Lines<T> lines_of(const Image::Args& args) {
  const bool planar = !lies_interleaved(args);
  const std::int64_t in_pixel = planar ? 1 : args.channels;
  const std::int64_t out_pixel = planar ? 1 : args.out_channels;
  Lines<T> p{.x = static_cast<const T*>(args.x.data),
             .y = static_cast<T*>(args.y.data),
             .pixels = args.columns,
             .x_plane = args.from.channel,
             .y_plane = args.to.channel,
             .out_channels = args.out_channels,
             .lines = args.pictures,
             .filter = filter_of<T>(args)};
  const auto follow = [&](std::int64_t from, std::int64_t to) {
    return from == p.pixels * in_pixel && to == p.pixels * out_pixel;
  };
  if (args.rows == 1 || follow(args.from.row, args.to.row)) {
    p.pixels *= args.rows;
    if (p.lines.rank == 1 && follow(p.lines.strides[0][0], p.lines.strides[1][0])) {
      p.pixels *= p.lines.size();
      p.lines = {};
    }
  } else {
    const int rank = args.x.rank();
    const int row = args.options.planar ? rank - 2 : rank - 3;
    const AxisSet pictures = (AxisSet{1} << (rank - 3)) - 1;
    p.lines =
        collapse<2>(args.x.shape, {args.x.strides, args.y.strides}, pictures | AxisSet{1} << row);
  }
  return p;
}

template <class T>
LaunchExtent grid_of(const Lines<T>& p) {
  constexpr std::int64_t max_lines = 1024;  // concurrent lines: enough to fill a GPU
  // One more lane than the pixels need, for the aligned start before the first pixel.
  const std::int64_t warps_needed =
      ceil_div(p.pixels + vector_width<T> - 1, lanes * vector_width<T>);
  return {ceil_div(warps_needed, warps), smaller(p.lines.size(), max_lines)};
}

Work work(const Image::Args& args, const Context&) {
  return visit<std::uint8_t, float>(args.x.dtype, [&]<class T>() -> Work {
    const Lines<T> p = lines_of<T>(args);
    const LaunchExtent grid = grid_of(p);
    return {.blocks = grid.x * grid.y,
            .resident = 8,
            .steps = args.channels * ceil_div(p.lines.size(), grid.y)};
  });
}

template <class T, int channels, bool planar>
void launch_of(const Image::Args& args, Context& context) {
  const Lines<T> p = lines_of<T>(args);
  launch(context,
         {.grid = grid_of(p),
          .block = {lanes, warps},
          .shared_bytes = planar ? 16 : std::size_t{16} * places<channels> * warps},
         image_vectorized_interleaved<T, channels, planar>, p, p.lines.size());
}

void run(const Image::Args& args, Context& context) {
  visit<std::uint8_t, float>(args.x.dtype, [&]<class T>() {
    const bool interleaved = lies_interleaved(args);
    if (args.channels == 3) {
      return interleaved ? launch_of<T, 3, false>(args, context)
                         : launch_of<T, 3, true>(args, context);
    }
    interleaved ? launch_of<T, 4, false>(args, context) : launch_of<T, 4, true>(args, context);
  });
}

const Rung<Image> self{{.name = "vectorized_interleaved",
                        .step = 40,
                        .after = "separable_fused",
                        .backend = device_backend,
                        .supports = supports,
                        .work = work,
                        .run = run}};

}  // namespace
}  // namespace rung
