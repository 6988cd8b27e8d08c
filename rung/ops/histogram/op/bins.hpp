// SPDX-License-Identifier: Apache-2.0
// The bin of a value: the formulas of histogram.hpp, written once for every backend. Each formula
// is a small object, passed to kernels by value; calling it returns a bin, or -1 for a value
// outside.
//
// Every operation below is a single IEEE operation or exact, and none can be contracted with its
// neighbor (a difference followed by a product has no fused form), so all compilers give the same
// bins.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "rung/core/dtype.hpp"
#include "rung/core/export.hpp"
#include "rung/ops/histogram/op/histogram.hpp"

namespace rung {

/// Type in which a value is compared and computed: f32, f64 or i64, which is also the type of
/// edges.
template <class T>
using BinKey = std::conditional_t<std::is_same_v<T, double>, double,
                                  std::conditional_t<std::is_integral_v<T>, std::int64_t, float>>;

constexpr DType key_dtype(DType x) {
  return !is_floating(x) ? DType::i64 : x == DType::f64 ? DType::f64 : DType::f32;
}

/// Bins of equal width for floats.
template <class Real>
struct EvenBins {
  using Key = Real;
  Real low, high, scale;
  std::int32_t last;

  static EvenBins make(const Histogram::Args& args) {
    return {static_cast<Real>(args.low), static_cast<Real>(args.high),
            static_cast<Real>(static_cast<double>(args.bins()) / (args.high - args.low)),
            static_cast<std::int32_t>(args.bins() - 1)};
  }
  /// Returns whether no value in the range overflows and the scale does not underflow.
  static bool representable(double low, double high, std::int64_t bins) {
    const Real width = static_cast<Real>(high) - static_cast<Real>(low);
    const Real scale = static_cast<Real>(static_cast<double>(bins) / (high - low));
    return std::isfinite(width) && std::isnormal(scale);
  }

  RUNG_HD RUNG_ALWAYS_INLINE std::int32_t operator()(Real x) const {
    if (!(x >= low && x <= high)) return -1;  // NaN fails the comparison and is outside
    // At most a few units above n: bins are limited to 2^30, so the conversion cannot overflow.
    const auto bin = static_cast<std::int32_t>((x - low) * scale);
    return bin < last ? bin : last;
  }
};

/// Bins of equal width for integers: floor(d n / span), computed as floor(d f / 2^64) with the
/// factor f = ceil(2^64 n / span). Exact for d < span <= 2^32: rounding the factor up adds less
/// than d / 2^64 < 1 / span, and a quotient that is not an integer is at least 1 / span below the
/// next integer.
struct WholeBins {
  using Key = std::int64_t;
  std::int64_t low;
  std::uint64_t span;
  std::uint64_t factor;  // 0: as many bins as integers, for which it would be 2^64

  static WholeBins make(const Histogram::Args& args) {
    const auto first = static_cast<std::int64_t>(args.low);
    const auto span = static_cast<std::uint64_t>(static_cast<std::int64_t>(args.high) - first);
    const auto bins = static_cast<std::uint64_t>(args.bins());
    if (bins == span) return {first, span, 0};
    // ceil(2^64 bins / span) by long division, bit by bit: span has at most 33 bits.
    std::uint64_t factor = 0;
    std::uint64_t rest = bins;
    for (int bit = 0; bit < 64; ++bit) {
      rest *= 2;
      factor = 2 * factor + (rest >= span ? 1 : 0);
      if (rest >= span) rest -= span;
    }
    return {first, span, factor + (rest != 0 ? 1 : 0)};
  }

  RUNG_HD RUNG_ALWAYS_INLINE std::int32_t operator()(std::int64_t x) const {
    const std::uint64_t d = static_cast<std::uint64_t>(x) - static_cast<std::uint64_t>(low);
    if (d >= span) return -1;
    return factor == 0 ? static_cast<std::int32_t>(d) : quotient(d, factor);
  }
  /// Returns floor(d factor / 2^64) for a 32-bit d, from two 64-bit products.
  static RUNG_HD RUNG_ALWAYS_INLINE std::int32_t quotient(std::uint64_t d, std::uint64_t factor) {
    const std::uint64_t below = d * (factor & 0xffffffffu) >> 32;
    return static_cast<std::int32_t>((d * (factor >> 32) + below) >> 32);
  }
};

/// Bins of equal width for types and ranges that 32 bits suffice for: below `low`, differences wrap
/// beyond the span, because 2^32 - (low - x) >= span whenever x >= -2^31 and low + span <= 2^31.
template <bool own>
struct ShortBins {
  using Key = std::int32_t;
  std::uint32_t low;
  std::uint32_t last;    // span - 1
  std::uint64_t factor;  // unused when values are their own bins

  static bool takes(const WholeBins& whole) {
    constexpr std::int64_t end = std::int64_t{1} << 31;
    return (whole.factor == 0) == own && whole.low >= -end &&
           whole.low + static_cast<std::int64_t>(whole.span) <= end;
  }
  static ShortBins make(const WholeBins& whole) {
    return {static_cast<std::uint32_t>(whole.low), static_cast<std::uint32_t>(whole.span - 1),
            whole.factor};
  }

  RUNG_HD RUNG_ALWAYS_INLINE std::int32_t operator()(std::int32_t x) const {
    const std::uint32_t d = static_cast<std::uint32_t>(x) - low;
    if (d > last) return -1;
    if constexpr (own) return static_cast<std::int32_t>(d);
    return WholeBins::quotient(d, factor);
  }
};

/// Bins with ascending edges, by binary search.
template <class Real>
struct EdgeBins {
  using Key = Real;
  const Real* edges;
  std::int64_t stride;
  std::int32_t bins;

  static EdgeBins make(const Histogram::Args& args) {
    return {static_cast<const Real*>(args.edges.data), args.edges.strides[0],
            static_cast<std::int32_t>(args.bins())};
  }

  RUNG_HD RUNG_ALWAYS_INLINE std::int32_t operator()(Real x) const {
    if (!(x >= edges[0] && x <= edges[bins * stride])) return -1;
    // Finds the last bin whose lower edge is not above x; `begin` is such a bin, and stays within
    // bounds even if edges do not ascend. Of equal edges the last is found: the bins between equal
    // edges are empty.
    std::int32_t begin = 0;
    for (std::int32_t count = bins; count > 1;) {
      const std::int32_t half = count / 2;
      begin = edges[(begin + half) * stride] <= x ? begin + half : begin;
      count -= half;
    }
    return begin;
  }
};

/// Returns an element as its key.
template <class T>
RUNG_HD RUNG_ALWAYS_INLINE inline BinKey<T> key_of(T value) {
  return static_cast<BinKey<T>>(value);
}

/// Calls f(bins) with the formula for x's type and options; Key is f32, f64 or i64.
template <class Key, class F>
auto with_bins(const Histogram::Args& args, F&& f) {
  if (!args.even()) {
    return f(EdgeBins<Key>::make(args));
  } else if constexpr (std::is_floating_point_v<Key>) {
    return f(EvenBins<Key>::make(args));
  } else {
    return f(WholeBins::make(args));
  }
}

/// Calls visit() with the types of x.
template <class F>
decltype(auto) visit_values(DType dtype, F&& f) {
  return visit<float, std::uint8_t, std::uint16_t, std::int32_t, std::int64_t, double, f16, bf16>(
      dtype, f);
}

}  // namespace rung
