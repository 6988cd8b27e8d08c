// SPDX-License-Identifier: Apache-2.0
// Building blocks of the rungs that gather an f32 layer by cp.async: rows are filters, columns
// pixels, k the terms.
//
// Terms are ordered by groups of eight channels, then taps, then the channels of a group. A tile of
// eight steps has one tap, so a pixel is checked against the padding once per eight elements, and
// taps reuse the elements of eight channels in L1. A first kernel packs filters in this order, with
// the filters of a term contiguous, and zeros for missing channels.
#pragma once

#include <cmath>
#include <span>

#include "rung/device/tile/async_tile.hpp"
#include "rung/ops/conv/shared/cuda/layer.hpp"
#include "rung/ops/conv/shared/cuda/tile_facts.hpp"
#include "rung/ops/conv/shared/cuda/tiles.hpp"

namespace rung::conv_cuda::inline RUNG_TARGET {

constexpr int async_steps = 8;
constexpr std::int64_t max_async_taps = 32;  // one bit per tap

/// Offset of a pixel's first tap in x, in elements, and a mask with one bit per tap that is inside
/// the image; 0 beyond the last pixel.
struct TappedPixel {
  std::int64_t base;
  unsigned inside;
};
__device__ __forceinline__ TappedPixel tapped_pixel(const Gathered& g, std::int64_t index) {
  TappedPixel made{0, 0};
  if (index >= g.pixels()) return made;
  const auto place = [](const SourceAxis& axis, std::int64_t o) {
    return static_cast<int>(o * axis.step + axis.start);
  };
  const auto is_inside = [](const SourceAxis& axis, int first, int tap) {
    const int at = first + tap * static_cast<int>(axis.between);
    return static_cast<unsigned>(at) < static_cast<unsigned>(axis.extent);
  };
  const int v = place(g.axis[2], take_axis(index, g.axis[2].places));
  const int h = place(g.axis[1], take_axis(index, g.axis[1].places));
  const int d = place(g.axis[0], take_axis(index, g.axis[0].places));
  made.base = index * g.x_strides[0] + d * g.x_strides[2] + h * g.x_strides[3] + v * g.x_strides[4];
  unsigned bit = 1;
  for (int td = 0; td < g.axis[0].kernel; ++td) {
    for (int th = 0; th < g.axis[1].kernel; ++th) {
      for (int tv = 0; tv < g.axis[2].kernel; ++tv, bit <<= 1) {
        const bool all = is_inside(g.axis[0], d, td) && is_inside(g.axis[1], h, th) &&
                         is_inside(g.axis[2], v, tv);
        made.inside |= all ? bit : 0;
      }
    }
  }
  return made;
}

/// Iterator over the terms, one tile at a time: the taps of eight channels, then of the next eight.
struct TermWalk {
  std::int64_t offset = 0;  // from a pixel's first tap and channel, in elements of x
  int channel = 0;          // the first of eight
  int tap = 0;
  int across = 0, down = 0;

  __device__ __forceinline__ void advance(const Gathered& g) {
    const auto step = [&](int axis) { return g.axis[axis].between * g.x_strides[2 + axis]; };
    ++tap;
    offset += step(2);
    if (++across < g.axis[2].kernel) return;
    across = 0;
    offset += step(1) - g.axis[2].kernel * step(2);
    if (++down < g.axis[1].kernel) return;
    down = 0;
    offset += step(0) - g.axis[1].kernel * step(1);
    if (tap < g.taps()) return;
    tap = 0;
    channel += async_steps;
    offset = channel * g.x_strides[1];
  }
};

/// Issues copies of a pixel's eight channels, `apart` elements apart in x, to shared memory, Pitch
/// words apart. Copies zeros if the tap is outside the image and, unless All channels exist, for
/// channels from `left` on.
template <int Pitch, bool All>
__device__ __forceinline__ void copy_channels(float* to, const float* from, std::int64_t apart,
                                              bool inside, int left) {
#pragma unroll
  for (int k = 0; k < async_steps; ++k) {
    const bool exists = inside && (All || k < left);
    ptx::async_copy<4>(to + k * Pitch, from, exists ? 4 : 0);
    from += apart;  // incrementing is cheaper than multiplying
  }
}

/// Packed filters of all groups: [group][eight channels][tap][channel][filter].
struct PackedFilters {
  float* data;
  std::int64_t pitch;  // filters per group, rounded up to a multiple of four
  std::int64_t terms;  // per filter, including missing channels

  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE std::int64_t of_group() const { return terms * pitch; }
};

/// Packs w, one element per thread.
__device__ __forceinline__ void pack_filters(const Gathered& g, const PackedFilters& packed) {
  const std::int64_t count = g.groups * packed.of_group();
  const std::int64_t step = std::int64_t{gridDim.x} * block_threads;
  std::int64_t i = std::int64_t{blockIdx.x} * block_threads + threadIdx.x;
  for (; i < count; i += step) {
    std::int64_t rest = i;
    const std::int64_t filter = take_axis(rest, packed.pitch);
    std::int64_t channel = take_axis(rest, async_steps);
    const std::int64_t tv = take_axis(rest, g.axis[2].kernel);
    const std::int64_t th = take_axis(rest, g.axis[1].kernel);
    const std::int64_t td = take_axis(rest, g.axis[0].kernel);
    channel += async_steps * take_axis(rest, (g.q + async_steps - 1) / async_steps);
    const auto* w = static_cast<const float*>(g.w) + rest * g.w_group;
    packed.data[i] = filter < g.m && channel < g.q
                         ? w[filter * g.w_strides[0] + channel * g.w_strides[1] +
                             td * g.w_strides[2] + th * g.w_strides[3] + tv * g.w_strides[4]]
                         : 0.0F;
  }
}

/// Returns whether four pixels that begin at a multiple of four are 16 aligned bytes of y.
__device__ __forceinline__ bool writes_fours(const Gathered& g) {
  std::int64_t behind = 1;
  for (int axis = 2; axis >= 0; --axis) {
    if (g.axis[axis].places > 1 && g.y_strides[2 + axis] != behind) return false;
    behind *= g.axis[axis].places;
  }
  return behind % 4 == 0 && g.y_strides[0] % 4 == 0 && g.y_strides[1] % 4 == 0 &&
         is_wide_aligned<float, 4>(static_cast<float*>(g.y));
}

/// Tiles of a block in flight: filters [step][filter], pixels [step][pixel].
template <TileShape shape>
struct AsyncRing {
  static_assert(shape.steps == async_steps && shape.thread_columns % 4 == 0);
  using Filters = AsyncTile<shape.rows, shape.steps, shape.threads(), TileAccess::wide>;
  static constexpr int pixels = shape.columns / shape.threads();  // copied per thread
  static_assert(pixels * shape.threads() == shape.columns, "every thread copies as much");
  alignas(16) float filters[shape.stages][Filters::elements];
  alignas(16) float pixels_of[shape.stages][async_steps * shape.columns];
};

/// Stores a block's tile with bias and activation, four pixels per store if writes_fours(). The
/// loop over rows is rolled, as in finish_tile() (rung/device/tile/epilogue.hpp): unrolled, each
/// element would have its own copy of every activation.
template <TileShape shape>
__device__ __forceinline__ void store_filters(const Gathered& g, std::int64_t group,
                                              int first_filter, std::int64_t first_pixel,
                                              const typename RegisterTile<shape>::Sums& sums) {
  using Tile = RegisterTile<shape>;
  constexpr int columns = shape.thread_columns;
  std::int64_t at[columns];
#pragma unroll
  for (int j = 0; j < columns; ++j) {
    std::int64_t index = first_pixel + Tile::column(j);
    at[j] = -1;
    if (index >= g.pixels()) continue;
    at[j] = take_axis(index, g.axis[2].places) * g.y_strides[4];
    at[j] += take_axis(index, g.axis[1].places) * g.y_strides[3];
    at[j] += take_axis(index, g.axis[0].places) * g.y_strides[2];
    at[j] += index * g.y_strides[0];
  }
  const bool wide = writes_fours(g);
  const auto* bias = static_cast<const float*>(g.bias);
#pragma unroll 1
  for (int i = 0; i < shape.thread_rows; ++i) {
    float picked[columns] = {};
#pragma unroll
    for (int candidate = 0; candidate < shape.thread_rows; ++candidate) {
      if (candidate == i) {
#pragma unroll
        for (int j = 0; j < columns; ++j) picked[j] = sums[candidate][j];
      }
    }
    const std::int64_t filter = first_filter + Tile::row(i);
    if (filter >= g.m) continue;
    const std::int64_t of_all = group * g.m + filter;
    const float added = bias != nullptr ? bias[of_all * g.bias_stride] : 0.0F;
    float* const y = static_cast<float*>(g.y) + of_all * g.y_strides[1];
    if (bias != nullptr || g.activation != Activation::none) {
#pragma unroll
      for (int j = 0; j < columns; ++j) {
        picked[j] = activate<float>(g.activation, picked[j] + added);
      }
    }
#pragma unroll
    for (int j = 0; j < columns; j += 4) {
      if (wide) {
        // The number of pixels is a multiple of four: all four exist, or none.
        const Pack<float, 4> four{{picked[j], picked[j + 1], picked[j + 2], picked[j + 3]}};
        if (at[j] >= 0) store_wide(y + at[j], four);
        continue;
      }
#pragma unroll
      for (int lane = j; lane < j + 4; ++lane) {
        if (at[lane] >= 0) y[at[lane]] = picked[lane];
      }
    }
  }
}

// --- on the host ---------------------------------------------------------------------------------

/// Returns a shape with eight columns per thread, five stages and `blocks` blocks per SM.
constexpr TileShape async_shape(int rows, int columns, int thread_rows, int blocks) {
  return {.rows = rows,
          .columns = columns,
          .steps = async_steps,
          .warp_rows = 4 * thread_rows,
          .warp_columns = 64,
          .thread_rows = thread_rows,
          .thread_columns = 8,
          .stages = 5,
          .blocks = blocks};
}
constexpr TileShape async_shapes[] = {async_shape(128, 256, 16, 1), async_shape(64, 256, 16, 2),
                                      async_shape(64, 128, 8, 3), async_shape(64, 64, 8, 6)};
constexpr int async_shape_count = 4;

inline PackedFilters packed_shape(const Gathered& g) {
  return {.data = nullptr,
          .pitch = round_up(g.m, std::int64_t{4}),
          .terms = round_up(g.q, std::int64_t{async_steps}) * g.taps()};
}

inline Support supports_async(const Gathered& g) {
  if (g.dtype != DType::f32) return unsupported("f32 only");
  if (!has_small_places(g)) {
    return unsupported("extents, paddings and taps of up to 2^28, channels of up to 2^31 - 1");
  }
  if (g.taps() > max_async_taps) return unsupported("filters of up to 32 taps");
  for (const SourceAxis& axis : g.axis) {
    if (axis.divisor != 1) return unsupported("a stride of 1");
  }
  // Indices of terms and of a step's filters have 32 bits.
  constexpr std::int64_t longest = std::int64_t{1} << 22;
  if (g.q > longest || g.m > longest) return unsupported("up to 4194304 channels and filters");
  if (ceil_div(g.m, 64) * g.groups > 0xffff || ceil_div(g.pixels(), 64) > 0x7fffffff) {
    return unsupported("more tiles than a grid has blocks");
  }
  return supported;
}

inline std::size_t packed_bytes(const Gathered& g) {
  const PackedFilters packed = packed_shape(g);
  const Extents bytes{g.groups, packed.terms, packed.pitch, sizeof(float)};
  return static_cast<std::size_t>(bytes.product());
}

/// Returns the work of layers that one launch computes in tiles of one shape, after a launch that
/// packs filters.
inline Work async_facts(std::span<const Gathered> layers, const Cost& cost, int index) {
  constexpr std::string_view paths[] = {"128x256", "64x256", "64x128", "64x64"};
  const TileShape& shape = async_shapes[index];
  double tiles = 0, terms = 0, filters = 0;
  std::int64_t most = 0;
  for (const Gathered& g : layers) {
    const std::int64_t own = ceil_div(g.pixels(), shape.columns);
    tiles += static_cast<double>(own);
    terms += static_cast<double>(own * packed_shape(g).terms);
    filters += static_cast<double>(packed_bytes(g));
    most = larger(most, own);
  }
  const Gathered& g = layers.front();
  const std::int64_t along = ceil_div(g.m, shape.rows) * g.groups;
  Work work =
      tile_facts(cost, {tiles * static_cast<double>(along), shape.rows, shape.columns, shape.steps},
                 terms / tiles, shape.blocks, paths[index]);
  work.bytes = work.bytes + 2 * filters;  // packed filters, written and read
  work.launches = 2;
  work.blocks = along * most * static_cast<std::int64_t>(layers.size());
  return work;
}

/// Returns the shape of least predicted time, by an operator's rates, for layers of one launch.
template <class Op>
int plan_async(std::span<const Gathered> layers, const Cost& cost, const Context& context) {
  static const detail::RatesCache rates;
  int best = 0;
  double least = 0;
  for (int i = 0; i < async_shape_count; ++i) {
    const Work work = async_facts(layers, cost, i);
    const Rates& own = rates.get(Op::name, "implicit_gemm_async", context)(work.path);
    const double seconds = predict(terms_of(work, context), own, context.backend()).seconds;
    if (i > 0 && seconds > least) continue;
    best = i;
    least = seconds;
  }
  return best;
}

inline PackedFilters make_packed(const Gathered& g, Context& context) {
  PackedFilters packed = packed_shape(g);
  packed.data = static_cast<float*>(context.workspace(packed_bytes(g)));
  return packed;
}
inline LaunchShape pack_grid(const Gathered& g, const PackedFilters& packed) {
  return {.grid = smaller(ceil_div(g.groups * packed.of_group(), block_threads),
                          std::int64_t{0x7fffffff}),
          .block = block_threads};
}
/// Calls f.template operator()<shape>() for a run-time shape.
template <class F>
void with_async_shape(int shape, F&& f) {
  switch (shape) {
    case 0:
      return f.template operator()<0>();
    case 1:
      return f.template operator()<1>();
    case 2:
      return f.template operator()<2>();
    default:
      return f.template operator()<3>();
  }
}
template <int Shape>
LaunchShape async_grid(const Gathered& g) {
  constexpr TileShape shape = async_shapes[Shape];
  return {.grid = {ceil_div(g.pixels(), shape.columns), ceil_div(g.m, shape.rows) * g.groups},
          .block = shape.threads(),
          .shared_bytes = sizeof(AsyncRing<shape>)};
}

}  // namespace rung::conv_cuda::inline RUNG_TARGET
