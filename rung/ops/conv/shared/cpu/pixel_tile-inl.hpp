// SPDX-License-Identifier: Apache-2.0
// The tile of rows of pixels (pixels-inl.hpp): some pixels by one to four vectors of filters,
// summed over runs of terms at the same offsets from each pixel.
#if defined(RUNG_OPS_CONV_CPU_PIXEL_TILE_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_CONV_CPU_PIXEL_TILE_INL_HPP_
#undef RUNG_OPS_CONV_CPU_PIXEL_TILE_INL_HPP_
#else
#define RUNG_OPS_CONV_CPU_PIXEL_TILE_INL_HPP_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "rung/cpu/load-inl.hpp"
#include "rung/ops/conv/shared/cpu/tile-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::conv_cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Terms that are contiguous: where they are from a pixel's first element, and their number.
struct TermRun {
  std::int64_t offset;
  std::int64_t term;
};
struct TermRuns {
  const TermRun* run;
  std::int64_t count;
  std::int64_t length;
};

/// Where a tile's sums go: rows of c or, if they are final, straight to the pixels, from filter
/// `first` on; of the last vector so many elements.
template <class T>
struct TileResult {
  T* c;
  T* const* to;  // or null
  std::int64_t first;
  int last;
};

/// c[i][j] = start[i start_pitch + j] + sum over terms of pixel[i][term] weights[term][j], a zero
/// as +0: a product of the padding, which is a term or not by a band's rows, would turn a -0, to
/// which a sum may underflow, into +0. Of two halves, the second one's pixels are `apart` elements
/// behind those of the first: more pointers than these eight have no registers.
template <int Halves, int Rows, int Vectors, class T>
HWY_NOINLINE void pixel_tile(const T* const* pixel, std::int64_t apart, const TermRuns& runs,
                             const T* weights, const T* start, std::int64_t start_pitch,
                             const TileResult<T>& result) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int lanes = lanes_of<T>;
  V sums[Halves][Rows][Vectors];
  const T* from[Rows];
#pragma GCC unroll 2
  for (int h = 0; h < Halves; ++h) {
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      from[i] = pixel[i];
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) {
        sums[h][i][v] = hn::LoadU(d, start + (h * Rows + i) * start_pitch + v * lanes);
      }
    }
  }
  for (std::int64_t r = 0; r < runs.count; ++r) {
    const T* panel = weights + runs.run[r].term * Vectors * lanes;
    const std::int64_t end = runs.run[r].offset + runs.length;
    for (std::int64_t k = runs.run[r].offset; k < end; ++k, panel += Vectors * lanes) {
      V right[Vectors];
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) right[v] = hn::LoadU(d, panel + v * lanes);
#pragma GCC unroll 2
      for (int h = 0; h < Halves; ++h) {
        const std::int64_t at = k + h * apart;
#pragma GCC unroll 8
        for (int i = 0; i < Rows; ++i) {
          const V left = hn::Set(d, from[i][at]);
#pragma GCC unroll 4
          for (int v = 0; v < Vectors; ++v) {
            sums[h][i][v] = hn::MulAdd(left, right[v], sums[h][i][v]);
          }
        }
      }
    }
  }
#pragma GCC unroll 2
  for (int h = 0; h < Halves; ++h) {
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      V(&row)[Vectors] = sums[h][i];
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) row[v] = hn::Add(row[v], hn::Zero(d));
      T* const c = result.to == nullptr ? result.c + (h * Rows + i) * Vectors * lanes
                                        : result.to[h * Rows + i] + result.first;
#pragma GCC unroll 4
      for (int v = 0; v < Vectors - 1; ++v) hn::StoreU(row[v], d, c + v * lanes);
      cpu::HWY_NAMESPACE::store_as_n(row[Vectors - 1], d, c + (Vectors - 1) * lanes,
                                     static_cast<std::size_t>(result.last));
    }
  }
}

template <class T>
using PixelTile = void (*)(const T* const*, std::int64_t, const TermRuns&, const T*, const T*,
                           std::int64_t, const TileResult<T>&);

/// The tiles of so many vectors: of `rows` pixels, of half of them, and of one; and where there are
/// registers enough for it, of twice as many.
template <class T>
struct PixelTiles {
  int rows;
  PixelTile<T> full, half, one, twice;
};
template <class T>
PixelTiles<T> pixel_tiles(int vectors) {
  if constexpr (panel_vectors == 4) {
    if (vectors == 1) {
      return {8, pixel_tile<1, 8, 1, T>, pixel_tile<1, 4, 1, T>, pixel_tile<1, 1, 1, T>,
              pixel_tile<2, 8, 1, T>};
    }
    if (vectors == 2) {
      return {8, pixel_tile<1, 8, 2, T>, pixel_tile<1, 4, 2, T>, pixel_tile<1, 1, 2, T>, nullptr};
    }
    if (vectors == 3) {
      return {8, pixel_tile<1, 8, 3, T>, pixel_tile<1, 4, 3, T>, pixel_tile<1, 1, 3, T>, nullptr};
    }
    return {6, pixel_tile<1, 6, 4, T>, pixel_tile<1, 3, 4, T>, pixel_tile<1, 1, 4, T>, nullptr};
  } else {
    if (vectors == 1) {
      return {8, pixel_tile<1, 8, 1, T>, pixel_tile<1, 4, 1, T>, pixel_tile<1, 1, 1, T>, nullptr};
    }
    return {6, pixel_tile<1, 6, 2, T>, pixel_tile<1, 3, 2, T>, pixel_tile<1, 1, 2, T>, nullptr};
  }
}

}  // namespace rung::conv_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
