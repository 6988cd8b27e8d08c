// SPDX-License-Identifier: Apache-2.0
//
// Reduction of the elements of a window, and its epilogue: bias, activation and conversion to y's
// type.
#if defined(RUNG_OPS_POOL_CPU_RESULTS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_POOL_CPU_RESULTS_INL_HPP_
#undef RUNG_OPS_POOL_CPU_RESULTS_INL_HPP_
#else
#define RUNG_OPS_POOL_CPU_RESULTS_INL_HPP_
#endif

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "rung/cpu/activate-inl.hpp"
#include "rung/cpu/strided_line-inl.hpp"
#include "rung/ops/pool/cpu/detail/kernels.hpp"
#include "rung/ops/pool/shared/cpu/divisors.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::pool_cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
using cpu::HWY_NAMESPACE::load_as;
using cpu::HWY_NAMESPACE::load_as_n;
using cpu::HWY_NAMESPACE::load_strided;
using cpu::HWY_NAMESPACE::store_as;
using cpu::HWY_NAMESPACE::store_as_n;

/// Type of a maximum's position, as wide as the arithmetic type.
template <class S>
using PositionOf = std::conditional_t<sizeof(S) == 8, std::int64_t, std::int32_t>;

/// Operation of a reduction: accumulate() adds an element of x to a result, combine() two results.
template <class S>
struct Maximum {
  static constexpr S identity = -std::numeric_limits<S>::infinity();
  template <class D, class V>
  static HWY_INLINE V accumulate(D, V best, V v) {  // a NaN stays: nothing is greater
    return hn::IfThenElse(hn::Or(hn::Gt(v, best), hn::IsNaN(v)), v, best);
  }
  template <class D, class V>
  static HWY_INLINE V combine(D d, V best, V v) {
    return accumulate(d, best, v);
  }
  static S accumulate(S best, S v) { return v > best || std::isnan(v) ? v : best; }
};
template <class S>
struct Sum {
  static constexpr S identity = 0;
  template <class D, class V>
  static HWY_INLINE V accumulate(D, V sum, V v) {
    return hn::Add(sum, v);
  }
  template <class D, class V>
  static HWY_INLINE V combine(D, V sum, V v) {
    return hn::Add(sum, v);
  }
  static S accumulate(S sum, S v) { return sum + v; }
};
template <class S>
struct SumOfSquares : Sum<S> {
  template <class D, class V>
  static HWY_INLINE V accumulate(D, V sum, V v) {
    return hn::MulAdd(v, v, sum);
  }
  static S accumulate(S sum, S v) { return sum + v * v; }
};

/// Calls f(operation) with the operation of a kind of pooling; weighted sums are sums.
template <class S, class F>
HWY_INLINE void with_operation(Pooling kind, F&& f) {
  switch (kind) {
    case Pooling::max:
      return f(Maximum<S>{});
    case Pooling::average:
    case Pooling::weighted:
      return f(Sum<S>{});
    case Pooling::l2:
      return f(SumOfSquares<S>{});
  }
}

inline bool is_divided(const Pool::Args& args) {
  return args.kind() == Pooling::average || args.kind() == Pooling::weighted;
}
/// Returns the divisors of a call's windows; for averages their reciprocals, by which sums are
/// multiplied.
template <class T>
PoolDivisors<T> divisors_for(const Pool::Args& args, Accumulator<T>* memory) {
  return {args, memory, args.kind() == Pooling::average};
}

/// Stores `count` results, `step` elements apart in y, after bias and activation. `bias` has one
/// element per result; if null, channel `c`'s bias applies, if any. Results are read and written
/// past their end, up to the slack.
template <class T, class S>
void finish(const Pool::Args& args, std::int64_t c, const S* bias, S* results, std::int64_t count,
            T* y, std::int64_t step) {
  const hn::ScalableTag<S> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const ConstTensorRef& biases = args.options.bias;
  if (biases.data != nullptr) {
    const auto one =
        hn::Set(d, bias != nullptr
                       ? S{0}
                       : static_cast<S>(static_cast<const T*>(biases.data)[c * biases.strides[0]]));
    for (std::int64_t i = 0; i < count; i += lanes) {
      const auto b = bias == nullptr ? one : hn::LoadU(d, bias + i);
      hn::StoreU(hn::Add(hn::LoadU(d, results + i), b), d, results + i);
    }
  }
  cpu::HWY_NAMESPACE::activate(args.options.activation, results, count);
  cpu::HWY_NAMESPACE::store_strided(results, count, y, step);
}

/// Stores positions of maxima, `offset` elements from the first index.
template <class I>
void store_positions(const TensorRef& indices, std::int64_t offset, const I* positions,
                     std::int64_t count, std::int64_t step) {
  if (indices.dtype == DType::i32) {
    auto* to = static_cast<std::int32_t*>(indices.data) + offset;
    for (std::int64_t i = 0; i < count; ++i) to[i * step] = static_cast<std::int32_t>(positions[i]);
  } else {
    auto* to = static_cast<std::int64_t*>(indices.data) + offset;
    for (std::int64_t i = 0; i < count; ++i) to[i * step] = positions[i];
  }
}

}  // namespace
}  // namespace rung::pool_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
