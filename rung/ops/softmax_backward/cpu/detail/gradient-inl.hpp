// SPDX-License-Identifier: Apache-2.0
//
// The two passes of softmax_backward over one contiguous row, and over a block of columns: the sum
// of dy y, or of dy, then the results.
#if defined(RUNG_OPS_SOFTMAX_BACKWARD_CPU_GRADIENT_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_SOFTMAX_BACKWARD_CPU_GRADIENT_INL_HPP_
#undef RUNG_OPS_SOFTMAX_BACKWARD_CPU_GRADIENT_INL_HPP_
#else
#define RUNG_OPS_SOFTMAX_BACKWARD_CPU_GRADIENT_INL_HPP_
#endif

#include <algorithm>
#include <cstdint>

#include "rung/cpu/columns-inl.hpp"
#include "rung/cpu/row-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::softmax_backward_cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace cpu::HWY_NAMESPACE;

/// Adds the products dy y to the chains.
template <class Sum, class T>
HWY_INLINE void add_products(Chains<Sum>& chains, const T* y, const T* dy, std::int64_t length) {
  const Full<Sum> d;
  for_vectors<Sum>(
      length,
      [&](std::int64_t i, int c) HWY_ATTR RUNG_ALWAYS_INLINE {
        chains.at[c] = hn::MulAdd(load_as(d, dy + i), load_as(d, y + i), chains.at[c]);
      },
      [&](std::int64_t i, std::size_t n) HWY_ATTR RUNG_ALWAYS_INLINE {
        chains.at[1] = hn::MulAdd(load_as_n(d, dy + i, n), load_as_n(d, y + i, n), chains.at[1]);
      });
}
/// Returns the sum of dy y; with log, of dy.
template <class Sum, class T>
HWY_INLINE Sum row_products(const T* y, const T* dy, std::int64_t length, bool log) {
  const Full<Sum> d;
  Chains<Sum> chains(0);
  if (log) {
    for_vectors<Sum>(
        length,
        [&](std::int64_t i, int c) HWY_ATTR RUNG_ALWAYS_INLINE {
          chains.at[c] = hn::Add(chains.at[c], load_as(d, dy + i));
        },
        [&](std::int64_t i, std::size_t n) HWY_ATTR RUNG_ALWAYS_INLINE {
          chains.at[1] = hn::Add(chains.at[1], load_as_n(d, dy + i, n));
        });
  } else {
    add_products(chains, y, dy, length);
  }
  return chains.sum();
}

template <class Sum, class T, class Y>
HWY_INLINE void write_gradient(const T* y, const T* dy, Y* dx, std::int64_t length, Sum sum,
                               Sum scale, bool log, bool stream) {
  const Full<Sum> d;
  const auto total = hn::Set(d, sum);
  const auto factor = hn::Set(d, scale);
  if (log) {
    const auto exponent = hn::Set(d, log2_e<Sum>);
    write_row<Sum>(dx, length, stream, [&](std::int64_t i, auto... n) HWY_ATTR RUNG_ALWAYS_INLINE {
      const auto e = exp2<true>(d, hn::Mul(load_some(d, y + i, n...), exponent));
      return hn::Mul(hn::NegMulAdd(e, total, load_some(d, dy + i, n...)), factor);
    });
  } else {
    write_row<Sum>(dx, length, stream, [&](std::int64_t i, auto... n) HWY_ATTR RUNG_ALWAYS_INLINE {
      const auto difference = hn::Sub(load_some(d, dy + i, n...), total);
      return hn::Mul(hn::Mul(difference, load_some(d, y + i, n...)), factor);
    });
  }
}

/// Writes the gradient of one row with non-temporal stores, and sums the products of the next:
/// memory is read and written all the time (4096x4096 on a 2-core Zen 5 vCPU: 4.5 ms, in loops of
/// their own 5.4). The row is written from its end: what was read last is still in L1, three
/// quarters of a row of 4096 (4.3 ms from its beginning, 3.8 from its end). Without the logarithm.
template <class Sum, class T, class Y>
HWY_INLINE Sum stream_gradient(const T* y, const T* dy, Y* dx, const T* next_y, const T* next_dy,
                               std::int64_t length, Sum sum, Sum scale) {
  using Stored = StoredTag<Y, Full<Sum>>;
  using Bits = hn::TFromD<Stored>;
  const Full<Sum> d;
  const auto total = hn::Set(d, sum);
  const auto factor = hn::Set(d, scale);
  Chains<Sum> chains(0);
  const auto gradient = [&](std::int64_t i, auto... n) HWY_ATTR RUNG_ALWAYS_INLINE {
    const auto incoming = load_some(d, dy + i, n...);
    return hn::Mul(hn::Mul(hn::Sub(incoming, total), load_some(d, y + i, n...)), factor);
  };
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t head = std::min(before_vectors<Sum>(dx), length);
  const std::int64_t whole = (length - head) / (4 * lanes) * (4 * lanes);
  for (std::int64_t i = 0; i < whole; i += 4 * lanes) {
    const std::int64_t from_end = head + whole - 4 * lanes - i;
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) {
      const std::int64_t at = i + c * lanes;
      chains.at[c] = hn::MulAdd(load_as(d, next_dy + at), load_as(d, next_y + at), chains.at[c]);
      const std::int64_t to = from_end + c * lanes;
      hn::Stream(narrow<Y>(d, gradient(to)), Stored(), reinterpret_cast<Bits*>(dx + to));
    }
  }
  if (head > 0) {
    const auto count = static_cast<std::size_t>(head);
    store_as_n(gradient(0, count), d, dx, count);
  }
  const std::int64_t behind = head + whole;
  write_row<Sum>(dx + behind, length - behind, true,
                 [&](std::int64_t i, auto... n)
                     HWY_ATTR RUNG_ALWAYS_INLINE { return gradient(behind + i, n...); });
  add_products(chains, next_y + whole, next_dy + whole, length - whole);
  return chains.sum();
}

/// Elements of a column whose terms are summed before they are added to its sum.
constexpr int unroll = 8;

/// The gradients of a block of columns; `sums` has room for a sum per column, in full vectors.
template <class Sum, class T, class Y>
HWY_NOINLINE void column_gradients(ColumnBlock<const T> y, ColumnBlock<const T> dy,
                                   ColumnBlock<Y> dx, std::int64_t length, std::int64_t columns,
                                   Sum scale, bool log, Sum* sums) {
  const Full<Sum> d;
  for_columns<Sum>(columns, [&](std::int64_t j, std::size_t) HWY_ATTR RUNG_ALWAYS_INLINE {
    hn::StoreU(hn::Zero(d), d, sums + j);
  });
  // Sums of eight first, so that an error of rounding is that of a sum an eighth as long.
  for (std::int64_t i = 0; i < length; i += unroll) {
    const std::int64_t end = std::min(i + unroll, length);
    for_columns<Sum>(columns, [&](std::int64_t j, std::size_t n) HWY_ATTR RUNG_ALWAYS_INLINE {
      auto sum = hn::Zero(d);
      for (std::int64_t k = i; k < end; ++k) {
        const auto gradient = load_columns(d, dy.first + k * dy.step + j, n);
        sum = log ? hn::Add(sum, gradient)
                  : hn::MulAdd(gradient, load_columns(d, y.first + k * y.step + j, n), sum);
      }
      hn::StoreU(hn::Add(hn::LoadU(d, sums + j), sum), d, sums + j);
    });
  }
  const auto factor = hn::Set(d, scale);
  const auto exponent = hn::Set(d, log2_e<Sum>);
  for (std::int64_t i = 0; i < length; ++i) {
    for_columns<Sum>(columns, [&](std::int64_t j, std::size_t n) HWY_ATTR RUNG_ALWAYS_INLINE {
      const auto value = load_columns(d, y.first + i * y.step + j, n);
      const auto gradient = load_columns(d, dy.first + i * dy.step + j, n);
      const auto sum = hn::LoadU(d, sums + j);
      const auto result =
          log ? hn::NegMulAdd(exp2<true>(d, hn::Mul(value, exponent)), sum, gradient)
              : hn::Mul(hn::Sub(gradient, sum), value);
      store_columns(hn::Mul(result, factor), d, dx.first + i * dx.step + j, n);
    });
  }
}

}  // namespace rung::softmax_backward_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
