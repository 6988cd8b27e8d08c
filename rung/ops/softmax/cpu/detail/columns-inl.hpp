// SPDX-License-Identifier: Apache-2.0
//
// softmax of adjacent rows (along any axis but the last): each lane of a vector walks down a row of
// its own.
#if defined(RUNG_OPS_SOFTMAX_CPU_COLUMNS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_SOFTMAX_CPU_COLUMNS_INL_HPP_
#undef RUNG_OPS_SOFTMAX_CPU_COLUMNS_INL_HPP_
#else
#define RUNG_OPS_SOFTMAX_CPU_COLUMNS_INL_HPP_
#endif

#include "rung/cpu/columns-inl.hpp"
#include "rung/ops/softmax/cpu/detail/kernels.hpp"
#include "rung/ops/softmax/cpu/detail/row-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::softmax_cpu::HWY_NAMESPACE {

/// Elements of a column that are combined in registers before they are added to its sum: the sum is
/// scaled to a new maximum once in so many.
constexpr int unroll = 8;

/// Maxima and sums of the columns, online: x is read once. `scratch` has room for both, full
/// vectors of them.
template <class Sum, class T>
HWY_NOINLINE void column_sums(ColumnBlock<const T> x, std::int64_t length, std::int64_t columns,
                              Sum scale, Sum* maxima, Sum* sums) {
  const Full<Sum> d;
  const auto factor = hn::Set(d, scale * log2_e<Sum>);
  const auto power = [&](auto value, auto maximum) HWY_ATTR RUNG_ALWAYS_INLINE {
    return exp2<false>(d, hn::Mul(hn::Sub(value, maximum), factor));
  };
  for_columns<Sum>(columns, [&](std::int64_t j, std::size_t) HWY_ATTR RUNG_ALWAYS_INLINE {
    hn::StoreU(hn::Set(d, no_maximum<Sum>), d, maxima + j);
    hn::StoreU(hn::Zero(d), d, sums + j);
  });
  std::int64_t i = 0;
  for (; i + unroll <= length; i += unroll) {
    for_columns<Sum>(columns, [&](std::int64_t j, std::size_t n) HWY_ATTR RUNG_ALWAYS_INLINE {
      Vector<Sum> value[unroll];
      const auto before = hn::LoadU(d, maxima + j);
      auto maximum = before;
#pragma GCC unroll 8
      for (int k = 0; k < unroll; ++k) {
        value[k] = load_columns(d, x.first + (i + k) * x.step + j, n);
        maximum = hn::Max(value[k], maximum);
      }
      auto sum = hn::Mul(hn::LoadU(d, sums + j), power(before, maximum));
#pragma GCC unroll 8
      for (int k = 0; k < unroll; ++k) value[k] = power(value[k], maximum);
#pragma GCC unroll 3
      for (int half = unroll / 2; half > 0; half /= 2) {
        for (int k = 0; k < half; ++k) value[k] = hn::Add(value[k], value[k + half]);
      }
      hn::StoreU(hn::Add(sum, value[0]), d, sums + j);
      hn::StoreU(maximum, d, maxima + j);
    });
  }
  for (; i < length; ++i) {
    for_columns<Sum>(columns, [&](std::int64_t j, std::size_t n) HWY_ATTR RUNG_ALWAYS_INLINE {
      const auto value = load_columns(d, x.first + i * x.step + j, n);
      const auto before = hn::LoadU(d, maxima + j);
      const auto maximum = hn::Max(value, before);
      const auto sum = hn::Mul(hn::LoadU(d, sums + j), power(before, maximum));
      hn::StoreU(hn::Add(sum, power(value, maximum)), d, sums + j);
      hn::StoreU(maximum, d, maxima + j);
    });
  }
}

template <class Sum, class T, class Y>
HWY_NOINLINE void softmax_columns(ColumnBlock<const T> x, ColumnBlock<Y> y, std::int64_t length,
                                  std::int64_t columns, Sum scale, bool log, Sum* scratch) {
  const Full<Sum> d;
  Sum* maxima = scratch;
  Sum* sums = scratch + cpu::max_columns;
  column_sums(x, length, columns, scale, maxima, sums);
  for (std::int64_t j = 0; j < columns; ++j) {
    sums[j] = log ? logarithm(sums[j]) : reciprocal(sums[j]);
  }
  const auto factor = hn::Set(d, log ? scale : scale * log2_e<Sum>);
  for (std::int64_t i = 0; i < length; ++i) {
    for_columns<Sum>(columns, [&](std::int64_t j, std::size_t n) HWY_ATTR RUNG_ALWAYS_INLINE {
      const auto value = load_columns(d, x.first + i * x.step + j, n);
      const auto difference = hn::Sub(value, hn::LoadU(d, maxima + j));
      const auto last = hn::LoadU(d, sums + j);
      const auto result = log ? hn::MulSub(difference, factor, last)
                              : hn::Mul(exp2<false>(d, hn::Mul(difference, factor)), last);
      store_columns(result, d, y.first + i * y.step + j, n);
    });
  }
}

}  // namespace rung::softmax_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
