// SPDX-License-Identifier: Apache-2.0
//
// What pool does with the taps of a window, as vectors, and what follows the last one: a quotient
// or a root, bias, activation and the conversion to y's type.
#if defined(RUNG_OPS_POOL_CPU_OPERATIONS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_POOL_CPU_OPERATIONS_INL_HPP_
#undef RUNG_OPS_POOL_CPU_OPERATIONS_INL_HPP_
#else
#define RUNG_OPS_POOL_CPU_OPERATIONS_INL_HPP_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "rung/cpu/activate-inl.hpp"
#include "rung/cpu/load-inl.hpp"
#include "rung/ops/pool/cpu/detail/call.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::pool_cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
using cpu::HWY_NAMESPACE::activate;
using cpu::HWY_NAMESPACE::load_as;
using cpu::HWY_NAMESPACE::load_as_n;
using cpu::HWY_NAMESPACE::store_as;
using cpu::HWY_NAMESPACE::store_as_n;

/// take(): an element of x into a column's result; join(): results of columns.
template <class S>
struct Maximum {
  static constexpr S identity = -std::numeric_limits<S>::infinity();
  template <class D, class V>
  static HWY_INLINE V take(D, V best, V v) {
    return hn::IfThenElse(hn::Or(hn::Gt(v, best), hn::IsNaN(v)), v, best);
  }
  template <class D, class V>
  static HWY_INLINE V join(D d, V best, V v) {
    return take(d, best, v);
  }
  static S take(S best, S v) { return v > best || std::isnan(v) ? v : best; }
};
template <class S>
struct Sum {
  static constexpr S identity = 0;
  template <class D, class V>
  static HWY_INLINE V take(D, V sum, V v) {
    return hn::Add(sum, v);
  }
  template <class D, class V>
  static HWY_INLINE V join(D, V sum, V v) {
    return hn::Add(sum, v);
  }
  static S take(S sum, S v) { return sum + v; }
};
template <class S>
struct SumOfSquares {
  static constexpr S identity = 0;
  template <class D, class V>
  static HWY_INLINE V take(D, V sum, V v) {
    return hn::MulAdd(v, v, sum);
  }
  template <class D, class V>
  static HWY_INLINE V join(D, V sum, V v) {
    return hn::Add(sum, v);
  }
  static S take(S sum, S v) { return sum + v * v; }
};

/// The weight of tap (i, j).
template <class T>
Accumulator<T> weight(const Call& call, std::int64_t i, std::int64_t j) {
  if (call.weights != nullptr) {
    return static_cast<const Accumulator<T>*>(call.weights)[i * call.args->columns.kernel + j];
  }
  const ConstTensorRef& weights = call.args->options.weights;
  const auto* data = static_cast<const T*>(weights.data);
  return static_cast<Accumulator<T>>(data[i * weights.strides[0] + j * weights.strides[1]]);
}

/// f(operation) for the kind of a call; weighted sums are sums.
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

/// The divisors of a block of windows of an output row, of weighted, and their reciprocals, of
/// average: found anew only where the block or the windows' rows differ from those before.
template <class T>
class Divisors {
 public:
  using S = Accumulator<T>;

  Divisors(const Call& call, S* of_window)
      : call_(call), columns_(call.args->columns), of_window_(of_window) {}

  /// Returns those of windows [first, first + count) of output row `oh`.
  const S* of_block(std::int64_t oh, std::int64_t first, std::int64_t count) {
    const PoolTaps rows = counted(call_.args->rows, oh);
    const bool same_rows = rows.begin == rows_.begin && rows.end == rows_.end;
    if (same_rows && first == first_) return of_window_;
    first_ = first;
    // Of windows with all taps, one stands for all.
    const bool padded = call_.args->options.count_padding;
    const std::int64_t last = columns_.in + (padded ? columns_.padding : 0) - call_.span();
    const std::int64_t end =
        last < -columns_.padding ? 0 : (last + columns_.padding) / columns_.stride + 1;
    const std::int64_t full_begin = padded ? 0 : ceil_div(columns_.padding, columns_.stride);
    const std::int64_t full_end = std::min(end, columns_.out);
    if (!same_rows && full_begin < full_end) of_full_ = of(rows, {0, columns_.kernel});
    rows_ = rows;
    for (std::int64_t i = 0; i < count;) {
      const std::int64_t ow = first + i;
      if (ow >= full_begin && ow < full_end) {
        const std::int64_t until = std::min(count, full_end - first);
        std::fill(of_window_ + i, of_window_ + until, of_full_);
        i = until;
      } else {
        of_window_[i++] = of(rows, counted(columns_, ow));
      }
    }
    return of_window_;
  }

 private:
  [[nodiscard]] PoolTaps counted(const PoolAxis& axis, std::int64_t o) const {
    if (call_.args->options.count_padding) return {0, axis.padded_taps(o)};
    return axis.taps(o);
  }
  [[nodiscard]] S of(PoolTaps rows, PoolTaps columns) const {
    if (call_.args->kind() != Pooling::weighted) {
      return S{1} / static_cast<S>(rows.count() * columns.count());
    }
    S sum = 0;
    for (std::int64_t i = rows.begin; i < rows.end; ++i) {
      for (std::int64_t j = columns.begin; j < columns.end; ++j) {
        sum += weight<T>(call_, i, j);
      }
    }
    return sum;
  }

  const Call& call_;
  const PoolAxis& columns_;
  S* of_window_;
  S of_full_ = 0;
  PoolTaps rows_{-1, -1};
  std::int64_t first_ = -1;
};

/// The bias of channel c where all results are of that one, else none.
template <class T>
struct ChannelBias {
  using S = Accumulator<T>;
  ChannelBias(const Pool::Args& args, std::int64_t c) {
    const ConstTensorRef& bias = args.options.bias;
    given = bias.data != nullptr;
    if (given) value = static_cast<S>(static_cast<const T*>(bias.data)[c * bias.strides[0]]);
  }
  [[nodiscard]] const S* get() const { return given ? &value : nullptr; }
  bool given;
  S value = 0;
};

/// Writes `count` results, `step` elements apart in y. bias: one for each of them, or (one_bias)
/// the same for all. `results` may be read and written up to the slack behind them.
template <class T, class S>
void finish(const Call& call, S* results, std::int64_t count, const S* bias, bool one_bias, T* y,
            std::int64_t step) {
  const hn::ScalableTag<S> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  if (bias != nullptr) {
    const auto same = hn::Set(d, *bias);
    for (std::int64_t i = 0; i < count; i += lanes) {
      const auto b = one_bias ? same : hn::LoadU(d, bias + i);
      hn::StoreU(hn::Add(hn::LoadU(d, results + i), b), d, results + i);
    }
  }
  activate(call.args->options.activation, results, count);
  if (step != 1) {
    for (std::int64_t i = 0; i < count; ++i) y[i * step] = static_cast<T>(results[i]);
    return;
  }
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) store_as(hn::LoadU(d, results + i), d, y + i);
  if (i < count) {
    store_as_n(hn::LoadU(d, results + i), d, y + i, static_cast<std::size_t>(count - i));
  }
}

/// Writes positions, those that came first from the windows' first taps.
template <class I>
void write_positions(const TensorRef& indices, std::int64_t offset, const I* positions,
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
