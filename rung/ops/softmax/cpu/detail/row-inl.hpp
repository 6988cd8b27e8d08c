// SPDX-License-Identifier: Apache-2.0
//
// The last pass of softmax over one contiguous row: the results, from the maximum and sum that
// rung/cpu/row-inl.hpp finds.
#if defined(RUNG_OPS_SOFTMAX_CPU_ROW_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_SOFTMAX_CPU_ROW_INL_HPP_
#undef RUNG_OPS_SOFTMAX_CPU_ROW_INL_HPP_
#else
#define RUNG_OPS_SOFTMAX_CPU_ROW_INL_HPP_
#endif

#include <cmath>
#include <cstdint>

#include "rung/core/export.hpp"
#include "rung/cpu/row-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::softmax_cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace cpu::HWY_NAMESPACE;

/// What rows of nothing but -infinity have instead of the reciprocal or logarithm of 0.
template <class Sum>
HWY_INLINE Sum reciprocal(Sum sum) {
  return sum == 0 ? Sum{0} : 1 / sum;
}
template <class Sum>
HWY_INLINE Sum logarithm(Sum sum) {
  return sum == 0 ? Sum{0} : std::log(sum);
}

/// The results, from the exponentials that row_sum kept.
template <class Sum, class Y>
HWY_INLINE void write_kept(const Sum* kept, Y* y, std::int64_t length, Sum sum, bool stream) {
  const Full<Sum> d;
  const auto factor = hn::Set(d, reciprocal(sum));
  write_row<Sum>(y, length, stream, [&](std::int64_t i, auto... n) HWY_ATTR RUNG_ALWAYS_INLINE {
    return hn::Mul(load_some(d, kept + i, n...), factor);
  });
}
/// The same, from x again, with prefetch distance `ahead`.
template <class Sum, class T, class Y>
HWY_NOINLINE void write_again(const T* x, Y* y, std::int64_t length, Sum maximum, Sum sum,
                              Sum scale, bool stream, std::int64_t ahead) {
  const Full<Sum> d;
  const auto high = hn::Set(d, maximum);
  const auto exponent = hn::Set(d, scale * log2_e<Sum>);
  const auto factor = hn::Set(d, reciprocal(sum));
  write_row<Sum>(y, length, stream, [&](std::int64_t i, auto... n) HWY_ATTR RUNG_ALWAYS_INLINE {
    prefetch(x + ahead + i);
    const auto difference = hn::Sub(load_some(d, x + i, n...), high);
    return hn::Mul(exp2<false>(d, hn::Mul(difference, exponent)), factor);
  });
}
template <class Sum, class T, class Y>
HWY_INLINE void write_log(const T* x, Y* y, std::int64_t length, Sum maximum, Sum sum, Sum scale,
                          bool stream) {
  const Full<Sum> d;
  const auto high = hn::Set(d, maximum);
  const auto factor = hn::Set(d, scale);
  const auto shift = hn::Set(d, logarithm(sum));
  write_row<Sum>(y, length, stream, [&](std::int64_t i, auto... n) HWY_ATTR RUNG_ALWAYS_INLINE {
    return hn::MulSub(hn::Sub(load_some(d, x + i, n...), high), factor, shift);
  });
}

}  // namespace rung::softmax_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
