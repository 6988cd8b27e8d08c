// SPDX-License-Identifier: Apache-2.0
// Building blocks of the kernels that gather a layer of f16 or bf16 with contiguous channels: eight
// channels of a tap are 16 bytes, which are copied to shared memory unchanged. Rows of the product
// are pixels, columns the channels written, k the terms.
#pragma once

#include "rung/device/ptx/matrix.hpp"
#include "rung/ops/conv/shared/cuda/gather.hpp"

namespace rung::conv_cuda::inline RUNG_TARGET {

constexpr int tile_pixels = 128;
constexpr int tile_filters = 64;
constexpr int tile_terms = 32;
constexpr int chunk = 8;  // channels per load
constexpr int chunks = tile_terms / chunk;
constexpr int warp_pixels = 32;  // 4 x 2 warps
constexpr int warp_filters = 32;
constexpr int pixel_fragments = warp_pixels / 16;
constexpr int filter_fragments = warp_filters / 8;
constexpr int pixel_slots = tile_pixels * chunks / block_threads;
/// Row pitches in shared memory. With 80 bytes, the eight rows that ldmatrix reads at a time are in
/// different banks.
constexpr int row_length = tile_terms + chunk;
constexpr int turned_length = tile_filters + chunk;  // 144 bytes: no bank conflicts either

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
  Entry table[table_entries];  // for chunks of 8 terms
};

template <class T>
using Eight = RawPack<T, chunk>;

template <class T>
__device__ __forceinline__ Eight<T> eight_zeros() {
  Eight<T> zeros{};
  return zeros;
}

/// Position of a thread in a tile that 4 x 2 warps multiply by mma.sync.
struct MmaPlace {
  int lane, first_pixel, first_filter;  // of the warp

  __device__ __forceinline__ MmaPlace()
      : lane(static_cast<int>(threadIdx.x) % 32),
        first_pixel(static_cast<int>(threadIdx.x) / 32 / 2 * warp_pixels),
        first_filter(static_cast<int>(threadIdx.x) / 32 % 2 * warp_filters) {}
  /// Returns the pixel of sums[i][j][2 * half + e].
  [[nodiscard]] __device__ __forceinline__ int pixel(int i, int half) const {
    return first_pixel + i * 16 + half * 8 + lane / 4;
  }
  [[nodiscard]] __device__ __forceinline__ int filter(int j, int e) const {
    return first_filter + j * 8 + lane % 4 * 2 + e;
  }
};

// --- on the host ---------------------------------------------------------------------------------

/// Returns whether each group of eight channels of a tensor is 16 aligned bytes.
inline bool in_eights(const ConstTensorRef& tensor, std::int64_t channels) {
  bool all = channels % chunk == 0 && tensor.strides[1] == 1 &&
             reinterpret_cast<std::uintptr_t>(tensor.data) % 16 == 0;
  for (const int axis : {0, 2, 3, 4}) {
    all = all && (tensor.shape[axis] == 1 || tensor.strides[axis] % chunk == 0);
  }
  return all;
}

inline Support supports_tensor_tiles(const Gathered& g) {
  return supports_gathered(g, tile_filters, tile_pixels);
}
/// Returns the slices of the terms: several if there are few tiles.
inline TermSlices tensor_slices(const Gathered& g) {
  return slices_of(g, tiles_of(g, tile_filters, tile_pixels), tile_terms);
}
/// Returns the work of a layer in tiles of tile_filters x tile_pixels.
inline Work tensor_facts(const Gathered& g, const Cost& cost, Amount terms) {
  const TermSlices slices = tensor_slices(g);
  return tile_facts(cost,
                    {tiles_of(g, tile_filters, tile_pixels), tile_filters, tile_pixels, tile_terms,
                     slices.count, sum_bytes(slices, 4)},
                    terms, 2);
}
template <class T>
LaunchShape tensor_grid(const Gathered& g, const TermSlices& slices = {}) {
  return tile_grid(g, slices, tile_filters, tile_pixels, sizeof(TensorStrips<T>));
}

}  // namespace rung::conv_cuda::inline RUNG_TARGET
