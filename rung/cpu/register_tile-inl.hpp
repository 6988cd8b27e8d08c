// SPDX-License-Identifier: Apache-2.0
//
// RegisterTile: Rows x Vectors vectors of sums, kept in registers while a kernel loops over the
// terms of a matrix product. Each term takes Vectors vector loads and Rows broadcasts for
// Rows x Vectors multiply-adds.
//
//   RegisterTile<6, 4, float> tile;
//   tile.clear();
//   for (k = 0; k < terms; ++k) tile.add(b + k * pitch, [&](int i) { return a[i][k]; });
//   tile.store(c, pitch);
//
// Shapes   six rows of four vectors are 24 accumulators in the 32 registers of AVX-512; six rows of
//          two vectors are 12 in the 16 registers of AVX2: enough independent chains to hide the
//          FMA latency.
// Cost     all loops unroll; the tile must be a local variable, or its sums are spilled.
#if defined(RUNG_CPU_REGISTER_TILE_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_CPU_REGISTER_TILE_INL_HPP_
#undef RUNG_CPU_REGISTER_TILE_INL_HPP_
#else
#define RUNG_CPU_REGISTER_TILE_INL_HPP_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "rung/cpu/load-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Rows of a full-size tile, and vectors per row.
constexpr int tile_rows = 6;
constexpr int tile_vectors = HWY_TARGET <= HWY_AVX3 ? 4 : 2;

template <class T>
constexpr int lanes_of = static_cast<int>(hn::MaxLanes(hn::ScalableTag<T>()));

template <int Rows, int Vectors, class T>
struct RegisterTile {
  using V = hn::Vec<hn::ScalableTag<T>>;
  static constexpr hn::ScalableTag<T> d{};
  static constexpr int lanes = lanes_of<T>;
  V sum[Rows][Vectors];

  HWY_INLINE void clear() {
    each([&](int i, int v) HWY_ATTR { sum[i][v] = hn::Zero(d); });
  }
  /// Loads the sums; row i begins at c + i * pitch.
  HWY_INLINE void load(const T* c, std::int64_t pitch) {
    each([&](int i, int v) HWY_ATTR { sum[i][v] = hn::LoadU(d, c + i * pitch + v * lanes); });
  }
  HWY_INLINE void store(T* c, std::int64_t pitch) const {
    each([&](int i, int v) HWY_ATTR { hn::StoreU(sum[i][v], d, c + i * pitch + v * lanes); });
  }
  /// Adds left(i) * right[j] to each sum (i, j).
  template <class Left>
  HWY_INLINE void add(const V (&right)[Vectors], const Left& left) {
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      const V factor = hn::Set(d, left(i));
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) sum[i][v] = hn::MulAdd(factor, right[v], sum[i][v]);
    }
  }
  template <class Left>
  HWY_INLINE void add(const T* right, const Left& left) {
    V loaded[Vectors];
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) loaded[v] = hn::LoadU(d, right + v * lanes);
    add(loaded, left);
  }

 private:
  template <class F>
  static HWY_INLINE void each(const F& f) {
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) f(i, v);
    }
  }
};

/// Calls f(std::integral_constant<int, n>()) for an n from 1 to Max.
template <int Max, class F>
HWY_INLINE void with_constant(int n, const F& f) {
  if constexpr (Max > 1) {
    if (n < Max) return with_constant<Max - 1>(n, f);
  }
  f(std::integral_constant<int, Max>());
}

/// Calls f(rows, vectors) with integral constants: 1 to tile_rows rows, and 1, 2 or tile_vectors
/// vectors, whichever covers `columns`.
template <class T, class F>
HWY_INLINE void with_tile(int rows, int columns, const F& f) {
  with_constant<tile_rows>(rows, [&](auto r) {
    if (columns <= lanes_of<T>) return f(r, std::integral_constant<int, 1>());
    if (columns <= 2 * lanes_of<T>) return f(r, std::integral_constant<int, 2>());
    f(r, std::integral_constant<int, tile_vectors>());
  });
}

}  // namespace rung::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
