// SPDX-License-Identifier: Apache-2.0
//
// The kernels of few_columns: panels of A, fetched while the one before is multiplied.
#if defined(RUNG_OPS_GEMM_CPU_FEW_COLUMNS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_GEMM_CPU_FEW_COLUMNS_INL_HPP_
#undef RUNG_OPS_GEMM_CPU_FEW_COLUMNS_INL_HPP_
#else
#define RUNG_OPS_GEMM_CPU_FEW_COLUMNS_INL_HPP_
#endif

#include "rung/ops/gemm/cpu_tile-inl.hpp"

#ifndef RUNG_OPS_GEMM_CPU_75_PANEL
#define RUNG_OPS_GEMM_CPU_75_PANEL
namespace rung::gemm_cpu {
namespace {
/// A tile, and what is fetched meanwhile: a line of each of `next_rows` rows for every 16 k.
template <class T>
struct Panel {
  TileArgs<T> tile;
  const char* next;
  std::int64_t next_row;  // bytes
  int next_rows;
};
template <class T>
using PanelFunction = void(const Panel<T>&);
}  // namespace
}  // namespace rung::gemm_cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace rung::gemm_cpu::HWY_NAMESPACE {
namespace {

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
  const T* a = t.a;
  const T* b = t.b;
  constexpr int line = 64 / sizeof(T);
  const std::int64_t lines = (t.k + line - 1) / line;  // of each row of the next panel
  for (std::int64_t x = 0; x < lines; ++x) {
    // Whole rows in turn: lines side by side come from one page of memory.
    const std::int64_t first = x * s.next_rows / lines;
    const std::int64_t end = (x + 1) * s.next_rows / lines;
    const char* fetch = s.next + first * s.next_row;
    const int steps = static_cast<int>(std::min<std::int64_t>(line, t.k - x * line));
    for (int q = 0; q < steps; ++q, fetch += 64) {
      for (std::int64_t r = first; r < end; ++r) {
        __builtin_prefetch(fetch + (r - first) * s.next_row, 0, 2);
      }
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
PanelFunction<T>* pick_panel(std::int64_t rows) {
  constexpr int most = vectors == 2 ? tile_rows : narrow_tile_rows;
  static constexpr auto table = []<int... r>(std::integer_sequence<int, r...>) {
    return std::array<PanelFunction<T>*, most>{&panel<T, r + 1, vectors>...};
  }(std::make_integer_sequence<int, most>());
  return table[static_cast<std::size_t>(rows - 1)];
}

}  // namespace
inline PanelFunction<float>* panel_f32(int vectors, std::int64_t rows) {
  return vectors == 1 ? pick_panel<float, 1>(rows) : pick_panel<float, 2>(rows);
}
inline PanelFunction<double>* panel_f64(int vectors, std::int64_t rows) {
  return vectors == 1 ? pick_panel<double, 1>(rows) : pick_panel<double, 2>(rows);
}
}  // namespace rung::gemm_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
