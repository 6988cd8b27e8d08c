// SPDX-License-Identifier: Apache-2.0
// A tile of a gathered layer on tensor cores, for f16 and bf16 whose channels are contiguous: eight
// channels of a tap are 16 bytes, which are copied to shared memory as they lie. Rows of the
// product are pixels, columns what is written of a pixel, k the terms.
#pragma once

#include <type_traits>

#include "rung/device/ptx/matrix.hpp"
#include "rung/ops/conv/shared/cuda/layer.hpp"
#include "rung/ops/conv/shared/cuda/term_slices.hpp"
#include "rung/ops/conv/shared/cuda/tiles.hpp"
#include "rung/ops/conv/shared/phases.hpp"

namespace rung::conv_cuda::inline RUNG_TARGET {

constexpr int tile_pixels = 128;
constexpr int tile_filters = 64;
constexpr int tile_terms = 32;
constexpr int chunk = 8;  // channels of a load
constexpr int chunks = tile_terms / chunk;
constexpr int warp_pixels = 32;  // 4 x 2 warps
constexpr int warp_filters = 32;
constexpr int pixel_fragments = warp_pixels / 16;
constexpr int filter_fragments = warp_filters / 8;
constexpr int pixel_slots = tile_pixels * chunks / block_threads;
/// Rows of 80 bytes: the eight that ldmatrix reads at a time are in different banks.
constexpr int row_length = tile_terms + chunk;
constexpr int turned_length = tile_filters + chunk;  // 144 bytes: likewise

template <class T>
struct Stage {
  alignas(16) T pixels[tile_pixels][row_length];
  union {
    alignas(16) T filters[tile_filters][row_length];
    T turned[tile_terms][turned_length];  // [term][filter]
  };
};
template <class T>
struct TensorStrips {
  Stage<T> stage[2];
  Entry table[table_entries];  // of chunks of 8 terms
};

/// Where a pixel's first tap would lie.
struct PixelPlace {
  std::int64_t base;
  int d, h, v;
};

template <class T>
using Eight = RawPack<T, chunk>;

template <class T>
__device__ __forceinline__ Eight<T> eight_zeros() {
  Eight<T> zeros{};
  return zeros;
}

/// What a thread has of a tile, multiplied by tensor cores: a warp makes 32 pixels of 32 filters.
template <class T, bool Turned>
struct MmaProduct {
  float sums[pixel_fragments][filter_fragments][4] = {};

  /// sums += the stage's pixels times its filters.
  __device__ __forceinline__ void add(const Stage<T>& here) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
#pragma unroll
    for (int depth = 0; depth < tile_terms; depth += 16) {
      std::uint32_t a[pixel_fragments][4];
      std::uint32_t b[filter_fragments][2];
#pragma unroll
      for (int i = 0; i < pixel_fragments; ++i) {
        const int row = warp / 2 * warp_pixels + i * 16 + lane % 16;
        ptx::load_matrix(a[i], &here.pixels[row][depth + lane / 16 * 8]);
      }
#pragma unroll
      for (int j = 0; j < filter_fragments; ++j) {
        const int filter = warp % 2 * warp_filters + j * 8;
        if constexpr (Turned) {
          ptx::load_matrix<2, true>(b[j], &here.turned[depth + lane % 16][filter]);
        } else {
          ptx::load_matrix(b[j], &here.filters[filter + lane % 8][depth + lane / 8 % 2 * 8]);
        }
      }
#pragma unroll
      for (int i = 0; i < pixel_fragments; ++i) {
#pragma unroll
        for (int j = 0; j < filter_fragments; ++j) ptx::mma<T>(sums[i][j], a[i], b[j]);
      }
    }
  }

  /// f(pixel, each) for each of the thread's pixels of the tile; each(put) calls put(filter, sum).
  template <class F>
  __device__ __forceinline__ void for_each_pixel(F&& f) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
#pragma unroll
    for (int i = 0; i < pixel_fragments; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        f(warp / 2 * warp_pixels + i * 16 + half * 8 + lane / 4, [&](auto&& put) {
#pragma unroll
          for (int j = 0; j < filter_fragments; ++j) {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
              put(warp % 2 * warp_filters + j * 8 + lane % 4 * 2 + e, sums[i][j][half * 2 + e]);
            }
          }
        });
      }
    }
  }
};

/// A block's tile of a layer, from loads to stores: blockIdx.x counts tiles of pixels, blockIdx.y
/// those of filters, of all groups. Turned: w is contiguous along what is written, as in the
/// gradient for x; its strip is then [term][filter], and ldmatrix transposes it.
template <class T, bool Turned, class Product = MmaProduct<T, Turned>>
__device__ __forceinline__ void tensor_tile(const Gathered& g, const TermSlices& slices = {}) {
  auto& memory = shared<TensorStrips<T>>();
  const int thread = static_cast<int>(threadIdx.x);
  const auto tiles = static_cast<unsigned>(ceil_div(g.m, tile_filters));
  const std::int64_t group = blockIdx.y / tiles;
  const std::int64_t first_filter = std::int64_t{blockIdx.y % tiles} * tile_filters;
  const std::int64_t first_pixel = std::int64_t{blockIdx.x} * tile_pixels;
  if (first_pixel >= g.pixels()) return;
  const T* const x = static_cast<const T*>(g.x) + group * g.q * g.x_strides[1];
  const T* const w = static_cast<const T*>(g.w) + group * g.w_group + first_filter * g.w_strides[0];

  // Four neighboring threads copy the 64 bytes of a row.
  const int column = thread % chunks;
  PixelPlace place[pixel_slots];
#pragma unroll
  for (int slot = 0; slot < pixel_slots; ++slot) {
    std::int64_t index = first_pixel + thread / chunks + slot * (block_threads / chunks);
    if (index >= g.pixels()) {
      place[slot] = {0, outside, outside, outside};
      continue;
    }
    const auto start = [&](int axis, std::int64_t o) {
      return static_cast<int>(o * g.axis[axis].step + g.axis[axis].start);
    };
    PixelPlace made{};
    made.v = start(2, take_axis(index, g.axis[2].places));
    made.h = start(1, take_axis(index, g.axis[1].places));
    made.d = start(0, take_axis(index, g.axis[0].places));
    made.base = index * g.x_strides[0] + made.d * g.x_strides[2] + made.h * g.x_strides[3] +
                made.v * g.x_strides[4];
    place[slot] = made;
  }
  // Of w: four threads a filter's 64 bytes, or eight threads a term's 128.
  constexpr int turned_chunks = tile_filters / chunk;
  const int filter_row = Turned ? thread / turned_chunks : thread / chunks;
  const int filter_column = Turned ? thread % turned_chunks : column;
  const bool has_filter = first_filter + (Turned ? filter_column * chunk : filter_row) < g.m;
  const TermRange terms = terms_of_block(slices, g.terms(), tile_terms);
  const std::int64_t first_chunk = terms.begin / chunk;
  const std::int64_t all_chunks = terms.end / chunk;
  // In registers: a layer in shared memory would be read again for each chunk.
  const auto depth = static_cast<unsigned>(g.axis[0].extent);
  const auto height = static_cast<unsigned>(g.axis[1].extent);
  const auto width = static_cast<unsigned>(g.axis[2].extent);
  const std::int64_t w_term = g.w_strides[1];
  const std::int64_t w_filter = g.w_strides[0];

  const auto refill = [&](std::int64_t first) {
    std::int64_t index = first + thread;
    Entry made{0, -1, outside, outside, outside, 0};
    if (index < all_chunks) {
      const std::int64_t q = take_axis(index, g.q / chunk) * chunk;
      const std::int64_t v = take_axis(index, g.axis[2].kernel);
      const std::int64_t h = take_axis(index, g.axis[1].kernel);
      const std::int64_t d = index;
      made.d = static_cast<int>(d * g.axis[0].between);
      made.h = static_cast<int>(h * g.axis[1].between);
      made.v = static_cast<int>(v * g.axis[2].between);
      made.image = q + made.d * g.x_strides[2] + made.h * g.x_strides[3] + made.v * g.x_strides[4];
      made.other =
          q * g.w_strides[1] + d * g.w_strides[2] + h * g.w_strides[3] + v * g.w_strides[4];
    }
    memory.table[thread] = made;
    __syncthreads();
  };
  Eight<T> of_pixels[pixel_slots] = {};
  Eight<T> of_filter = {};
  const auto load = [&](int first) {
    const Entry entry = memory.table[first + column];
#pragma unroll
    for (int slot = 0; slot < pixel_slots; ++slot) {
      const PixelPlace& at = place[slot];
      const int d = at.d + entry.d;
      const int h = at.h + entry.h;
      const int v = at.v + entry.v;
      const bool inside = static_cast<unsigned>(d) < depth && static_cast<unsigned>(h) < height &&
                          static_cast<unsigned>(v) < width;
      of_pixels[slot] = inside ? load_raw<chunk>(x + at.base + entry.image) : eight_zeros<T>();
    }
    if constexpr (Turned) {
      const Entry& term = memory.table[first + filter_row / chunk];
      of_filter = has_filter && term.other >= 0
                      ? load_raw<chunk>(w + term.other + filter_row % chunk * w_term +
                                        filter_column * chunk)
                      : eight_zeros<T>();
    } else {
      of_filter = has_filter && entry.other >= 0
                      ? load_raw<chunk>(w + filter_row * w_filter + entry.other)
                      : eight_zeros<T>();
    }
  };

  Product product;
  if (first_chunk < all_chunks) {
    refill(first_chunk);
    load(0);
  }
  int stage = 0;
  for (std::int64_t k = first_chunk; k < all_chunks; k += chunks, stage ^= 1) {
    Stage<T>& here = memory.stage[stage];
#pragma unroll
    for (int slot = 0; slot < pixel_slots; ++slot) {
      const int row = thread / chunks + slot * (block_threads / chunks);
      store_raw(&here.pixels[row][column * chunk], of_pixels[slot]);
    }
    if constexpr (Turned) {
      store_raw(&here.turned[filter_row][filter_column * chunk], of_filter);
    } else {
      store_raw(&here.filters[filter_row][filter_column * chunk], of_filter);
    }
    __syncthreads();
    const std::int64_t next = k + chunks;
    if (next < all_chunks) {
      const int at = static_cast<int>((next - first_chunk) % table_entries);
      if (at == 0) refill(next);
      load(at);
    }
    product.add(here);
  }

  const std::int64_t of_group = group * g.m * g.y_strides[1];
  T* const y = static_cast<T*>(g.y) + of_group;
  float* const partial = static_cast<float*>(g.y) +
                         blockIdx.z % static_cast<unsigned>(slices.count) * slices.elements +
                         of_group;
  const auto* bias = static_cast<const T*>(g.bias);
  product.for_each_pixel([&](int pixel, auto&& each) {
    std::int64_t index = first_pixel + pixel;
    if (index >= g.pixels()) return;
    std::int64_t at = take_axis(index, g.axis[2].places) * g.y_strides[4];
    at += take_axis(index, g.axis[1].places) * g.y_strides[3];
    at += take_axis(index, g.axis[0].places) * g.y_strides[2];
    at += index * g.y_strides[0];
    each([&](int of_tile, float sum) {
      const std::int64_t filter = first_filter + of_tile;
      if (filter >= g.m) return;
      if (slices.count > 1) {
        partial[at + filter * g.y_strides[1]] = sum;
        return;
      }
      if (bias != nullptr) sum += convert<float>(bias[(group * g.m + filter) * g.bias_stride]);
      y[at + filter * g.y_strides[1]] = convert<T>(activate<T>(g.activation, sum));
    });
  });
}

// --- on the host ---------------------------------------------------------------------------------

/// Eight channels wherever they begin: 16 bytes, aligned.
inline bool in_eights(const ConstTensorRef& tensor, std::int64_t channels) {
  bool all = channels % chunk == 0 && tensor.strides[1] == 1 &&
             reinterpret_cast<std::uintptr_t>(tensor.data) % 16 == 0;
  for (const int axis : {0, 2, 3, 4}) {
    all = all && (tensor.shape[axis] == 1 || tensor.strides[axis] % chunk == 0);
  }
  return all;
}

inline Support supports_tensor_tiles(const Gathered& g) {
  if (!has_small_places(g)) {
    return unsupported("extents, paddings and taps of up to 2^28, channels of up to 2^31 - 1");
  }
  const bool fits = ceil_div(g.m, tile_filters) * g.groups <= 0xffff &&
                    ceil_div(g.pixels(), tile_pixels) <= 0x7fffffff &&
                    conv_layer::phases_of(g) <= 0xffff;
  return fits ? supported : unsupported("more tiles than a grid has blocks");
}

/// Slices of the terms, where there are few tiles.
inline TermSlices tensor_slices(const Gathered& g) {
  const double tiles = static_cast<double>(ceil_div(conv_layer::phase_pixels(g), tile_pixels)) *
                       static_cast<double>(ceil_div(g.m, tile_filters) * g.groups) *
                       static_cast<double>(conv_layer::phases_of(g));
  return slices_of(g, tiles, tile_terms);
}

template <class T>
LaunchShape tensor_grid(const Gathered& g, const TermSlices& slices = {}) {
  return {.grid = {ceil_div(conv_layer::phase_pixels(g), tile_pixels),
                   ceil_div(g.m, tile_filters) * g.groups, conv_layer::phases_of(g) * slices.count},
          .block = block_threads,
          .shared_bytes = sizeof(TensorStrips<T>)};
}

}  // namespace rung::conv_cuda::inline RUNG_TARGET
