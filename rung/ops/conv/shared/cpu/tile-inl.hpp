// SPDX-License-Identifier: Apache-2.0
// The product that conv's SIMD rungs are made of: some rows, each broadcast element by element,
// times a panel whose rows are vectors.
//
//   c[i][j] += sum over k of row[i][k] panel[k][j],   0 <= i < Rows, 0 <= j < Vectors lanes
//
// Six rows of four vectors are 24 sums in 32 registers of AVX-512, six of two 12 in the 16 of AVX2:
// per step 6 broadcasts and 4 loads feed 24 multiply-adds, so that the units of both stay busy.
#if defined(RUNG_OPS_CONV_CPU_TILE_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_CONV_CPU_TILE_INL_HPP_
#undef RUNG_OPS_CONV_CPU_TILE_INL_HPP_
#else
#define RUNG_OPS_CONV_CPU_TILE_INL_HPP_
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace rung::conv_cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Rows of a tile, and vectors of a full panel.
constexpr int tile_rows = 6;
#if HWY_TARGET <= HWY_AVX3
constexpr int panel_vectors = 4;
#else
constexpr int panel_vectors = 2;
#endif

template <class T>
constexpr int lanes_of = static_cast<int>(hn::MaxLanes(hn::ScalableTag<T>()));
/// Columns of a panel.
template <class T>
constexpr int panel_columns = panel_vectors* lanes_of<T>;

template <int Rows, int Vectors, class T>
HWY_NOINLINE void tile(const T* const* row, std::int64_t count, const T* panel, T* c, bool add) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int lanes = lanes_of<T>;
  constexpr int columns = panel_columns<T>;
  V sums[Rows][Vectors];
  const T* from[Rows];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
    from[i] = row[i];
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      sums[i][v] = add ? hn::LoadU(d, c + i * columns + v * lanes) : hn::Zero(d);
    }
  }
  for (std::int64_t k = 0; k < count; ++k) {
    V right[Vectors];
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) right[v] = hn::LoadU(d, panel + v * lanes);
    panel += columns;
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      const V left = hn::Set(d, from[i][k]);
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) sums[i][v] = hn::MulAdd(left, right[v], sums[i][v]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) hn::StoreU(sums[i][v], d, c + i * columns + v * lanes);
  }
}

template <class T>
using TileFunction = void (*)(const T* const*, std::int64_t, const T*, T*, bool);

/// The tile of so many rows, 1 to 6, and vectors enough for so many columns.
template <class T>
TileFunction<T> tile_for(int rows, int columns) {
  constexpr TileFunction<T> narrow[] = {tile<1, 1, T>, tile<2, 1, T>, tile<3, 1, T>,
                                        tile<4, 1, T>, tile<5, 1, T>, tile<6, 1, T>};
  constexpr TileFunction<T> half[] = {tile<1, 2, T>, tile<2, 2, T>, tile<3, 2, T>,
                                      tile<4, 2, T>, tile<5, 2, T>, tile<6, 2, T>};
  if (columns <= lanes_of<T>) return narrow[rows - 1];
  if (columns <= 2 * lanes_of<T>) return half[rows - 1];
  if constexpr (panel_vectors == 4) {
    constexpr TileFunction<T> full[] = {tile<1, 4, T>, tile<2, 4, T>, tile<3, 4, T>,
                                        tile<4, 4, T>, tile<5, 4, T>, tile<6, 4, T>};
    return full[rows - 1];
  }
  return half[rows - 1];
}

/// c[i][j] += sum over k of rows[k pitch + i] panel[k][j]: a step broadcasts what is contiguous.
template <int Rows, int Vectors, class T>
HWY_NOINLINE void turned_tile(const T* rows, std::int64_t pitch, std::int64_t count, const T* panel,
                              T* c, bool add) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int lanes = lanes_of<T>;
  constexpr int columns = panel_columns<T>;
  V sums[Rows][Vectors];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      sums[i][v] = add ? hn::LoadU(d, c + i * columns + v * lanes) : hn::Zero(d);
    }
  }
  for (std::int64_t k = 0; k < count; ++k, rows += pitch, panel += columns) {
    V right[Vectors];
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) right[v] = hn::LoadU(d, panel + v * lanes);
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      const V left = hn::Set(d, rows[i]);
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) sums[i][v] = hn::MulAdd(left, right[v], sums[i][v]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) hn::StoreU(sums[i][v], d, c + i * columns + v * lanes);
  }
}

template <class T>
using TurnedTile = void (*)(const T*, std::int64_t, std::int64_t, const T*, T*, bool);

/// As tile_for().
template <class T>
TurnedTile<T> turned_tile_for(int rows, int columns) {
  constexpr TurnedTile<T> narrow[] = {turned_tile<1, 1, T>, turned_tile<2, 1, T>,
                                      turned_tile<3, 1, T>, turned_tile<4, 1, T>,
                                      turned_tile<5, 1, T>, turned_tile<6, 1, T>};
  constexpr TurnedTile<T> half[] = {turned_tile<1, 2, T>, turned_tile<2, 2, T>,
                                    turned_tile<3, 2, T>, turned_tile<4, 2, T>,
                                    turned_tile<5, 2, T>, turned_tile<6, 2, T>};
  if (columns <= lanes_of<T>) return narrow[rows - 1];
  if (columns <= 2 * lanes_of<T>) return half[rows - 1];
  if constexpr (panel_vectors == 4) {
    constexpr TurnedTile<T> full[] = {turned_tile<1, 4, T>, turned_tile<2, 4, T>,
                                      turned_tile<3, 4, T>, turned_tile<4, 4, T>,
                                      turned_tile<5, 4, T>, turned_tile<6, 4, T>};
    return full[rows - 1];
  }
  return half[rows - 1];
}

/// All of `rows` rows: c has a row of panel_columns per row. `pointer(i)` is where row i begins.
template <class T, class Pointer>
HWY_INLINE void multiply(std::int64_t rows, int columns, std::int64_t count, const T* panel, T* c,
                         bool add, const Pointer& pointer) {
  const T* row[tile_rows];
  for (std::int64_t first = 0; first < rows; first += tile_rows) {
    const int some = static_cast<int>(rows - first < tile_rows ? rows - first : tile_rows);
    for (int i = 0; i < some; ++i) row[i] = pointer(first + i);
    tile_for<T>(some, columns)(row, count, panel, c + first * panel_columns<T>, add);
  }
}

}  // namespace rung::conv_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
