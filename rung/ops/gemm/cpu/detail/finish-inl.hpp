// SPDX-License-Identifier: Apache-2.0
//
// The epilogue, applied to finished sums while they are in the cache. It gathers short runs of a
// row into a buffer, so that one implementation serves every type and stride.
#if defined(RUNG_OPS_GEMM_CPU_FINISH_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_GEMM_CPU_FINISH_INL_HPP_
#undef RUNG_OPS_GEMM_CPU_FINISH_INL_HPP_
#else
#define RUNG_OPS_GEMM_CPU_FINISH_INL_HPP_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <type_traits>

#include "rung/cpu/activate-inl.hpp"
#include "rung/cpu/load-inl.hpp"
#include "rung/ops/gemm/cpu/detail/engine.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::gemm_cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Adds scale * from[i * step] to x[i]; `from` is C or a bias in the caller's layout. The compiler
// vectorizes the contiguous case of one type.
template <class T, class Out>
HWY_INLINE void add_scaled(const Out* from, std::int64_t step, T scale, T* x, int count) {
  if (step == 1 && std::is_same_v<T, Out>) {
    for (int j = 0; j < count; ++j) x[j] += scale * static_cast<T>(from[j]);
  } else if (step == 1) {
    const hn::ScalableTag<T> d;
    constexpr int lanes = HWY_LANES(T);
    for (int j = 0; j < count; j += lanes) {
      const auto some = static_cast<std::size_t>(std::min(lanes, count - j));
      const auto more = cpu::HWY_NAMESPACE::load_as_n(d, from + j, some);
      hn::StoreU(hn::MulAdd(hn::Set(d, scale), more, hn::LoadU(d, x + j)), d, x + j);
    }
  } else {
    for (int j = 0; j < count; ++j) x[j] += scale * static_cast<T>(from[j * step]);
  }
}

// Stores contiguous sums that only need rounding.
template <class T, class Out>
void round_sums(const T* sums, Out* c, std::int64_t count) {
  const hn::ScalableTag<T> d;
  constexpr int lanes = HWY_LANES(T);
  std::int64_t j = 0;
  for (; j + lanes <= count; j += lanes) {
    cpu::HWY_NAMESPACE::store_as(hn::LoadU(d, sums + j), d, c + j);
  }
  if (j < count) {
    const auto left = static_cast<std::size_t>(count - j);
    cpu::HWY_NAMESPACE::store_as_n(hn::MaskedLoad(hn::FirstN(d, left), d, sums + j), d, c + j,
                                   left);
  }
}

template <class T, class Out>
void finish(const FinishArgs<T>& f) {
  const bool only_rounds = f.beta == T{0} && f.bias == nullptr && f.residual == nullptr &&
                           f.activation == Activation::none && f.c_column == 1;
  if (only_rounds) {
    for (std::int64_t i = 0; i < f.rows; ++i) {
      round_sums(f.sums + i * f.sums_row, static_cast<Out*>(f.c) + i * f.c_row, f.columns);
    }
    return;
  }
  // A multiple of every vector length, short enough to stay in registers and the L1 cache.
  constexpr int run = 64;
  alignas(64) T x[run] = {};
  for (std::int64_t i = 0; i < f.rows; ++i) {
    for (std::int64_t j0 = 0; j0 < f.columns; j0 += run) {
      const int count = static_cast<int>(std::min<std::int64_t>(run, f.columns - j0));
      const T* sums = f.sums + i * f.sums_row + j0;
      for (int j = 0; j < count; ++j) x[j] = sums[j];
      Out* c = static_cast<Out*>(f.c) + i * f.c_row + j0 * f.c_column;
      if (f.beta != T{0}) add_scaled(c, f.c_column, f.beta, x, count);
      if (f.bias != nullptr) {
        const Out* bias = static_cast<const Out*>(f.bias) + i * f.bias_row + j0 * f.bias_column;
        add_scaled(bias, f.bias_column, T{1}, x, count);
      }
      if (f.activation != Activation::none) cpu::HWY_NAMESPACE::activate(f.activation, x, count);
      if (f.residual != nullptr) {
        const Out* residual =
            static_cast<const Out*>(f.residual) + i * f.residual_row + j0 * f.residual_column;
        add_scaled(residual, f.residual_column, T{1}, x, count);
      }
      if (f.c_column == 1 && std::is_same_v<T, Out>) {
        for (int j = 0; j < count; ++j) c[j] = static_cast<Out>(x[j]);
      } else if (f.c_column == 1) {
        const hn::ScalableTag<T> d;
        constexpr int lanes = HWY_LANES(T);
        int j = 0;
        for (; j + lanes <= count; j += lanes) {
          cpu::HWY_NAMESPACE::store_as(hn::LoadU(d, x + j), d, c + j);
        }
        if (j < count) {
          cpu::HWY_NAMESPACE::store_as_n(hn::LoadU(d, x + j), d, c + j,
                                         static_cast<std::size_t>(count - j));
        }
      } else {
        for (int j = 0; j < count; ++j) c[j * f.c_column] = static_cast<Out>(x[j]);
      }
    }
  }
}

}  // namespace rung::gemm_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
