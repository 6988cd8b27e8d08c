// SPDX-License-Identifier: Apache-2.0
//
// The kernels of few_rows: all rows of C at once, along rows of B that are read once.
#if defined(RUNG_OPS_GEMM_CPU_FEW_ROWS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_GEMM_CPU_FEW_ROWS_INL_HPP_
#undef RUNG_OPS_GEMM_CPU_FEW_ROWS_INL_HPP_
#else
#define RUNG_OPS_GEMM_CPU_FEW_ROWS_INL_HPP_
#endif

#include "rung/ops/gemm/cpu/detail/tile-inl.hpp"

#ifndef RUNG_OPS_GEMM_CPU_74_SWEEP
#define RUNG_OPS_GEMM_CPU_74_SWEEP
namespace rung::gemm_cpu {
namespace {
constexpr std::int64_t run_columns = 128;  // of B that stay in L1 while groups of rows go by
constexpr std::int64_t fetch_ahead = 256;  // columns
constexpr std::int64_t max_rows = 32;

/// C = A * B + beta * C for a group of rows, a block of k and a run of columns.
template <class T>
struct Sweep {
  std::int64_t k, columns;
  const T* a;  // element (i, p) at p * a_column + i
  std::int64_t a_column;
  const T* b;
  std::int64_t b_row;
  std::int64_t ahead;  // how many elements further on B is fetched
  T* c;
  std::int64_t c_row;
  T beta;
};
template <class T>
using SweepFunction = void(const Sweep<T>&);
}  // namespace
}  // namespace rung::gemm_cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace rung::gemm_cpu::HWY_NAMESPACE {
namespace {

template <class T, int rows>
void sweep(const Sweep<T>& s) {
  const Full<T> d;
  using V = hn::Vec<Full<T>>;
  constexpr int vectors = 2;
  const V beta = hn::Set(d, s.beta);
  // A tile of columns; only the last is masked.
  using Mask = hn::Mask<Full<T>>;
  const auto tile = [&](std::int64_t j, auto masked, Mask m0, Mask m1) HWY_ATTR {
    const Mask mask[vectors] = {m0, m1};
    const auto load = [&](const T* from, int v) HWY_ATTR {
      if (!masked) return hn::LoadU(d, from);
      // Nothing is left of this vector. (The scalar target's MaskedLoad reads all
      // the same.)
      if (j + v * lanes<T>() >= s.columns) return hn::Zero(d);
      return hn::MaskedLoad(mask[v], d, from);
    };
    V acc[rows][vectors];
#pragma GCC unroll 32
    for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) {
        const T* c = s.c + i * s.c_row + j + v * lanes<T>();
        acc[i][v] = s.beta == T{0} ? hn::Zero(d) : hn::Mul(beta, load(c, v));
      }
    }
    const T* b = s.b + j;
    const T* a = s.a;
    for (std::int64_t p = 0; p < s.k; ++p, a += s.a_column, b += s.b_row) {
      V row[vectors];
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) {
        __builtin_prefetch(b + s.ahead + v * lanes<T>());
        row[v] = load(b + v * lanes<T>(), v);
      }
#pragma GCC unroll 32
      for (int i = 0; i < rows; ++i) {
        const V element = hn::Set(d, a[i]);
#pragma GCC unroll 2
        for (int v = 0; v < vectors; ++v) acc[i][v] = hn::MulAdd(element, row[v], acc[i][v]);
      }
    }
#pragma GCC unroll 32
    for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) {
        T* c = s.c + i * s.c_row + j + v * lanes<T>();
        if (!masked) {
          hn::StoreU(acc[i][v], d, c);
        } else if (j + v * lanes<T>() < s.columns) {
          hn::BlendedStore(acc[i][v], mask[v], d, c);
        }
      }
    }
  };
  constexpr std::int64_t width = vectors * lanes<T>();
  const auto none = hn::FirstN(d, 0);
  std::int64_t j = 0;
  for (; j + width <= s.columns; j += width) tile(j, std::false_type(), none, none);
  if (j < s.columns) {
    const std::int64_t left = s.columns - j;
    tile(j, std::true_type(), hn::FirstN(d, static_cast<std::size_t>(left)),
         left > lanes<T>() ? hn::FirstN(d, static_cast<std::size_t>(left - lanes<T>())) : none);
  }
}

template <class T>
SweepFunction<T>* pick_sweep(std::int64_t rows) {
  static constexpr auto table = []<int... r>(std::integer_sequence<int, r...>) {
    return std::array<SweepFunction<T>*, tile_rows>{&sweep<T, r + 1>...};
  }
  (std::make_integer_sequence<int, tile_rows>());
  return table[static_cast<std::size_t>(rows - 1)];
}

}  // namespace
inline SweepFunction<float>* sweep_f32(std::int64_t rows) { return pick_sweep<float>(rows); }
inline SweepFunction<double>* sweep_f64(std::int64_t rows) { return pick_sweep<double>(rows); }
}  // namespace rung::gemm_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
