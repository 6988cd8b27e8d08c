// SPDX-License-Identifier: Apache-2.0
// image / separable, fused
//
// Idea     A blur of T x T is a pass over columns and a pass over rows; one kernel runs both passes
//          of a tile, with the intermediate sums in shared memory. x is loaded and y stored 16
//          bytes at a time, for any alignment of rows.
// Changes  Against shared_tile: 2 T multiply-adds per result instead of T^2. A thread computes four
//          results per pass, so that a loaded element serves up to four windows. For u8, two column
//          sums share one 32-bit register.
// Cost     (32 + 2 r)(240 + 2 r C) elements loaded per 32 x 240 results, for radius r and C
//          channels. For radius 2, elements of x and intermediate sums are each read twice from
//          shared memory.
// Limits   Box with clamped edges, Gaussian, unsharp; contiguous rows. u8 is bound by integer
//          instructions, not by memory, from radius 2 on.
// Source   V. Podlozhnyuk, Image Convolution with CUDA, 2007.
#include "rung/device/load_anywhere.hpp"
#include "rung/ops/image/cuda/detail/rows.hpp"

namespace rung {
namespace {

using namespace image_cuda;

constexpr int threads = 256;
constexpr int tile_rows = 32;
constexpr int results = 4;  // results per thread, in either pass

/// Type of the intermediate sums: sums of u8 are exact and below 2^16.
template <class T>
using MidOf = std::conditional_t<Filter<T>::is_u8, std::uint16_t, float>;

template <class T, int group>
constexpr int tile_width = (group == 3 ? 240 : 256) / (Filter<T>::is_u8 ? 1 : 2);

/// Sums of four adjacent elements. u8: two sums per register, even elements in one, odd elements in
/// the other.
template <class T>
struct Four;
template <>
struct Four<float> {
  float at[results] = {};
  static __device__ __forceinline__ Four load(const float* from) {
    Four four;
    *reinterpret_cast<Pack<float, results>*>(four.at) = load_wide<results>(from);
    return four;
  }
  __device__ __forceinline__ void add(float weight, const Four& x) {
#pragma unroll
    for (int i = 0; i < results; ++i) at[i] += weight * x.at[i];
  }
  __device__ __forceinline__ void store(float* to) const {
    store_wide<results>(to, *reinterpret_cast<const Pack<float, results>*>(at));
  }
};
template <>
struct Four<std::uint8_t> {
  unsigned even = 0, odd = 0;
  static __device__ __forceinline__ Four load(const std::uint8_t* from) {
    const auto word = *reinterpret_cast<const device_detail::Chunk<4>::Type*>(from);
    return {word & 0x00ff00ffU, word >> 8 & 0x00ff00ffU};
  }
  __device__ __forceinline__ void add(int weight, const Four& x) {
    even += static_cast<unsigned>(weight) * x.even;
    odd += static_cast<unsigned>(weight) * x.odd;
  }
  __device__ __forceinline__ void store(std::uint16_t* to) const {
    const unsigned pairs[2] = {__byte_perm(even, odd, 0x5410), __byte_perm(even, odd, 0x7632)};
    RawPack<std::uint16_t, results> raw;
    __builtin_memcpy(&raw, pairs, sizeof(raw));
    store_raw(to, raw);
  }
};

/// Shared memory of a block: the tile of x, the sums down its columns, and results to be stored.
template <class T, int group>
struct FusedTile {
  int radius, halo, width;

  explicit RUNG_HD FusedTile(int r)
      : radius(r),
        halo(round_up(r * group, vector_width<T>)),
        width(tile_width<T, group> + 2 * halo) {}
  [[nodiscard]] RUNG_HD int in() const { return (tile_rows + 2 * radius) * width; }
  [[nodiscard]] RUNG_HD int mid() const { return tile_rows * width; }
  static constexpr int out_pitch = tile_width<T, group> + vector_width<T>;
  [[nodiscard]] RUNG_HD int bytes() const {
    constexpr int element = static_cast<int>(sizeof(T));
    return (in() + tile_rows * out_pitch) * element + mid() * static_cast<int>(sizeof(MidOf<T>));
  }
};

/// Computes a tile of a blur. static_radius 0: the radius is the filter's.
template <class T, int group, int static_radius>
__global__ void __launch_bounds__(threads)
    image_separable_fused(const __grid_constant__ Rows<T> p) {
  using Sum = typename Filter<T>::Sum;
  using Mid = MidOf<T>;
  constexpr int width = tile_width<T, group>;
  const int radius = static_radius > 0 ? static_radius : p.filter.radius;
  const FusedTile<T, group> tile(radius);
  T* const in = &shared<T>();
  T* const out = in + tile.in();
  Mid* const mid = reinterpret_cast<Mid*>(out + tile_rows * tile.out_pitch);
  const int thread = static_cast<int>(threadIdx.x);
  const int first_row = static_cast<int>(blockIdx.y) * tile_rows;
  const int first = static_cast<int>(blockIdx.x) * width;
  const bool is_sharpened = p.filter.kind == ImageFilter::unsharp;
  const Plane<T> plane(p, blockIdx.z);

  // Loads the tile of x, with the border's nearest pixels outside the picture.
  const int chunks = tile.width / vector_width<T>;
  for (int i = thread; i < (tile_rows + 2 * radius) * chunks; i += threads) {
    const int r = i / chunks;
    const int c = (i - r * chunks) * vector_width<T>;
    const int element = first + c - tile.halo;
    const T* const from = plane.x + p.inside_row(first_row + r - radius) * p.x_row;
    T* const to = in + r * tile.width + c;
    if (element >= 0 && element + vector_width<T> <= p.elements) {
      store_raw(to, load_anywhere<vector_width<T>>(from, element, p.elements));
    } else if (c + vector_width<T> > tile.halo - radius * group &&
               c < tile.halo + width + radius * group) {
      // Columns beyond every window are not loaded.
      for (int e = 0; e < vector_width<T>; ++e) {
        const int reached = element + e < -radius * group ? -radius * group : element + e;
        to[e] = from[p.inside(reached)];
      }
    }
  }
  __syncthreads();

  // Sums down the columns: four adjacent elements of four rows.
  const int fours = tile.width / results;
  for (int i = thread; i < fours * (tile_rows / results); i += threads) {
    const int rows = i / fours;
    const int c = (i - rows * fours) * results;
    const T* from = in + rows * results * tile.width + c;
    Four<T> sums[results];
#pragma unroll
    for (int k = 0; k < results + 2 * radius; ++k, from += tile.width) {
      const Four<T> x = Four<T>::load(from);
#pragma unroll
      for (int q = 0; q < results; ++q) {
        const int tap = k - q - radius;
        if (tap >= -radius && tap <= radius) sums[q].add(p.filter.weight[tap < 0 ? -tap : tap], x);
      }
    }
    Mid* const to = mid + rows * results * tile.width + c;
#pragma unroll
    for (int q = 0; q < results; ++q) sums[q].store(to + q * tile.width);
  }
  __syncthreads();

  // Sums along the rows: four pixels of one channel.
  constexpr int per_row = width / results;
  for (int i = thread; i < tile_rows * per_row; i += threads) {
    const int r = i / per_row;
    const int in_row = i - r * per_row;
    const int c = in_row / group * (group * results) + in_row % group;
    const Mid* from = mid + r * tile.width + tile.halo + c - radius * group;
    Sum sums[results] = {};
#pragma unroll
    for (int l = 0; l < results + 2 * radius; ++l, from += group) {
      const Sum x = static_cast<Sum>(*from);
#pragma unroll
      for (int q = 0; q < results; ++q) {
        const int tap = l - q - radius;
        if (tap >= -radius && tap <= radius) sums[q] += p.filter.weight[tap < 0 ? -tap : tap] * x;
      }
    }
    // Results begin at y's offset from 16-byte alignment, so that chunks of `out` match those of y.
    const T* const y = plane.y + (first_row + r) * p.y_row + first;
    const int skew = static_cast<int>(reinterpret_cast<std::uintptr_t>(y) % 16 / sizeof(T));
    T* const to = out + r * tile.out_pitch + skew + c;
    const T* const x = in + (r + radius) * tile.width + tile.halo + c;
#pragma unroll
    for (int q = 0; q < results; ++q) {
      const int at = q * group;
      const Sum blur = p.filter.blurred(sums[q]);
      if (!is_sharpened) {
        to[at] = static_cast<T>(blur);
      } else if (p.is_alpha(plane.number, c + at)) {
        to[at] = x[at];
      } else {
        to[at] = p.filter.sharpened(static_cast<Sum>(x[at]), blur);
      }
    }
  }
  __syncthreads();

  const int count = p.elements - first < width ? p.elements - first : width;
  constexpr int out_chunks = tile.out_pitch / vector_width<T>;
  for (int i = thread; i < tile_rows * out_chunks; i += threads) {
    const int r = i / out_chunks;
    if (first_row + r >= p.rows) break;
    T* const y = plane.y + (first_row + r) * p.y_row + first;
    const int skew = static_cast<int>(reinterpret_cast<std::uintptr_t>(y) % 16 / sizeof(T));
    const int c = (i - r * out_chunks) * vector_width<T>;  // chunk offset in the row of `out`
    const T* const from = out + r * tile.out_pitch + c;
    const int begin = c - skew;
    if (begin >= 0 && begin + vector_width<T> <= count) {
      store_wide<vector_width<T>>(y + begin, load_wide<vector_width<T>>(from));
    } else {
      for (int e = 0; e < vector_width<T>; ++e) {
        if (begin + e >= 0 && begin + e < count) y[begin + e] = from[e];
      }
    }
  }
}

template <class T, int group>
void launch_of(const Image::Args& args, Context& context) {
  const Rows<T> p = rows_of<T>(args);
  const auto kernel = args.radius == 1   ? image_separable_fused<T, group, 1>
                      : args.radius == 2 ? image_separable_fused<T, group, 2>
                                         : image_separable_fused<T, group, 0>;
  launch(context,
         {.grid = {ceil_div(p.elements, tile_width<T, group>), ceil_div(p.rows, tile_rows),
                   planes_of(args)},
          .block = threads,
          .shared_bytes = static_cast<std::size_t>(FusedTile<T, group>(args.radius).bytes())},
         kernel, p);
}

Support supports(const Image::Args& args, const Context&) {
  if (args.filter() == ImageFilter::sobel) return unsupported("takes blurs and unsharp");
  if (args.options.edge == ImageEdge::zero) return unsupported("takes clamped edges");
  const bool contiguous =
      is_interleaved(args) || args.columns == 1 || (args.from.column == 1 && args.to.column == 1);
  if (!contiguous) return unsupported("the rows must be contiguous, interleaved or planar");
  return supports_tiles(args, tile_rows);
}

/// Calls f<T, group>() with the element type and the channels per row element of the picture.
template <class F>
auto with_group(const Image::Args& args, const F& f) {
  return visit<std::uint8_t, float>(args.x.dtype, [&]<class T>() {
    switch (is_interleaved(args) ? args.channels : 1) {
      case 1:
        return f.template operator()<T, 1>();
      case 2:
        return f.template operator()<T, 2>();
      case 3:
        return f.template operator()<T, 3>();
      default:
        return f.template operator()<T, 4>();
    }
  });
}

Work work(const Image::Args& args, const Context&) {
  return with_group(args, [&]<class T, int group>() -> Work {
    const FusedTile<T, group> tile(args.radius);
    const int loads = ceil_div(tile.in(), vector_width<T> * threads);
    const int down = ceil_div(tile.mid(), results * results * threads) * results;
    const int along = ceil_div(tile_rows * tile_width<T, group>, results * threads);
    return {.blocks = tile_blocks(args, tile_rows, tile_width<T, group>),
            .resident = 8,
            .steps = loads + (down + along) * (results + 2 * args.radius)};
  });
}

void run(const Image::Args& args, Context& context) {
  with_group(args, [&]<class T, int group>() { launch_of<T, group>(args, context); });
}

const Rung<Image> self{{.name = "separable_fused",
                        .step = 30,
                        .after = "shared_tile",
                        .backend = device_backend,
                        .supports = supports,
                        .work = work,
                        .run = run}};

}  // namespace
}  // namespace rung
