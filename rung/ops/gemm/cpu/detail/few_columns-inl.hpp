// SPDX-License-Identifier: Apache-2.0
//
// The kernels of few_columns: a few rows of A go by, read where they are and fetched well ahead.
#if defined(RUNG_OPS_GEMM_CPU_FEW_COLUMNS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_GEMM_CPU_FEW_COLUMNS_INL_HPP_
#undef RUNG_OPS_GEMM_CPU_FEW_COLUMNS_INL_HPP_
#else
#define RUNG_OPS_GEMM_CPU_FEW_COLUMNS_INL_HPP_
#endif

#include "rung/ops/gemm/cpu/detail/tile-inl.hpp"

#ifndef RUNG_OPS_GEMM_CPU_75_PANEL
#define RUNG_OPS_GEMM_CPU_75_PANEL
namespace rung::gemm_cpu {
namespace {
/// A tile of rows that come from memory once, and what is fetched meanwhile: for every 64 bytes of
/// T along k, `bytes` of each row, first from `fetch` on, then from `later` on.
template <class T>
struct Panel {
  TileArgs<T> tile;
  const char* fetch;
  std::int64_t fetch_row;  // bytes
  std::int64_t bytes;
  std::int64_t turn;  // the k from which on it is `later`
  const char* later;
};
template <class T>
using PanelFunction = void(const Panel<T>&);
/// By vectors - 1: the kernels by rows - 1, and how many rows there may be.
template <class T>
struct Panels {
  PanelFunction<T>* const* functions[2];
  int max_rows[2];
};
}  // namespace
}  // namespace rung::gemm_cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace rung::gemm_cpu::HWY_NAMESPACE {
namespace {

// Rows that a panel has at most: 8 accumulators hide the latency of the FMA, and more than 8
// streams, or a power of two apart more than 12 lines in a set of L1, are hard on the caches.
template <int vectors>
constexpr int panel_rows = tile_rows < 8 && vectors == 2 ? tile_rows : 8;

template <class T, int rows, int vectors>
void panel(const Panel<T>& s) {
  const TileArgs<T>& t = s.tile;
  const Full<T> d;
  using V = hn::Vec<Full<T>>;
  const auto last = hn::FirstN(d, static_cast<std::size_t>(t.columns - (vectors - 1) * lanes<T>()));
  V acc[rows][vectors];
#pragma GCC unroll 32
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < vectors; ++j) acc[i][j] = hn::Zero(d);
  }
  constexpr int line = 64 / sizeof(T);
  const T* a = t.a;
  const T* b = t.b;
  const char* fetch = s.fetch;
  for (std::int64_t p = 0; p < t.k; p += line, fetch += s.bytes) {
    if (p >= s.turn && p - line < s.turn) fetch = s.later;
    for (int i = 0; i < rows; ++i) __builtin_prefetch(fetch + i * s.fetch_row);
    const int steps = static_cast<int>(std::min<std::int64_t>(line, t.k - p));
#pragma GCC unroll 2
    for (int q = 0; q < steps; ++q) {
      V row[vectors];
      load_b_row<vectors, Source::packed>(d, b, last, row);
      update<rows, vectors, Source::strided>(d, a, t.a_row, row, acc);
      ++a;
      b += vectors * lanes<T>();
    }
  }
  write_tile<rows, vectors>(d, t, last, acc);
}

template <class T, int vectors>
PanelFunction<T>* const* panel_table() {
  static constexpr auto table = []<int... r>(std::integer_sequence<int, r...>) {
    return std::array<PanelFunction<T>*, panel_rows<vectors>>{&panel<T, r + 1, vectors>...};
  }
  (std::make_integer_sequence<int, panel_rows<vectors>>());
  return table.data();
}

template <class T>
Panels<T> panels_of() {
  return {{panel_table<T, 1>(), panel_table<T, 2>()}, {panel_rows<1>, panel_rows<2>}};
}

}  // namespace
inline Panels<float> panels_f32() { return panels_of<float>(); }
inline Panels<double> panels_f64() { return panels_of<double>(); }
}  // namespace rung::gemm_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
